package settle_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"sync/atomic"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/cron"
)

// A reminder that waits for an hour, and a job of every morning, with a clock that the test
// advances.
func Example_timers() {
	var ahead atomic.Int64
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return noon.Add(time.Duration(ahead.Load())) }

	fired := make(chan string, 10)
	tell := func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
		text, _ := ev.Payload.Get("text").AsString()
		if at, cron := ev.Payload.Get("at").AsString(); cron {
			text = "the morning of " + at
		}
		fired <- tx.Now().Format("Mon 15:04") + ": " + text
		return settle.Value{}, nil
	}
	p := settle.NewProgram("reminders")
	p.Handle("tell", tell)
	p.Handle("remind", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
		tx.SetTimer("reminder", "tell", tx.Now().Add(time.Hour), ev.Payload)
		return settle.Value{}, nil
	})
	p.Cron("morning", "0 9 * * *", settle.NewStream[cron.Tick]("tell"))

	dir, err := os.MkdirTemp("", "settle-example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	d, err := settle.Start(ctx, settle.Config{
		Programs: settle.Always(p), Server: embedded.Config{StoreDir: dir}, Now: clock,
	})
	if err != nil {
		log.Fatal(err)
	}
	call := func(id, text string) {
		_, err := d.Client().Call(ctx, settle.Outgoing{Space: "alice", Stream: "remind", ID: settle.ID(id), Payload: map[string]string{"text": text}})
		if err != nil {
			log.Fatal(err)
		}
	}
	call("r1", "tea")
	call("r2", "tea, now really") // the same timer, set again
	ahead.Store(int64(time.Hour))
	fmt.Println(<-fired)
	ahead.Store(int64(21 * time.Hour))
	fmt.Println(<-fired)
	if err := d.Stop(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// Sat 13:00: tea, now really
	// Sun 09:00: the morning of 2026-11-22T09:00:00Z
}
