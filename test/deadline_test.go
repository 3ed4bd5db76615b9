package test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/deadline"
	"github.com/settlehq/settle/remote"
	"github.com/settlehq/settle/space"
)

// Tasks that no performer takes, and tasks that wait for clients, fail at their deadlines, although workers are killed meanwhile: Done runs once for each,
// and a task that has ended before is not concerned.
func TestDeadline_TasksEndThoughWorkersAreKilled(t *testing.T) {
	t.Parallel()
	const spaces, orders = 3, 8
	charge, approve := settle.NewAction[int, int]("charge"), settle.NewAction[int, int]("approve")
	buy := settle.NewStream[string]("buy")
	ended := settle.NewRows[[]string]("ended")
	p := settle.NewProgram("shop")
	buy.Handle(p, func(tx *settle.Tx, key string) error {
		charge.Start(tx, key, 1, space.Deadline(time.Second))
		if strings.HasSuffix(key, "-0") {
			approve.Start(tx, key, 1)
		} else {
			approve.Start(tx, key, 1, space.Deadline(2*time.Second))
		}
		return nil
	})
	charge.External(p, deadline.After(time.Hour))
	approve.External(p, remote.Watched(), deadline.After(time.Hour))
	for _, a := range []settle.Action[int, int]{charge, approve} {
		a.Done(p, func(tx *settle.Tx, t settle.Task[int, int]) error {
			how := string(t.State)
			if t.Err != nil {
				how, _, _ = strings.Cut(t.Err.Error(), ":")
			}
			ended.Update(tx, t.Key, func(l *[]string) { *l = append(*l, a.Name()+" "+how) })
			return nil
		})
	}
	d := deploy(t, settle.Config{Programs: settle.Always(p), Workers: 2, Bus: bus.Config{Partitions: 2}})
	ctx := testContext(t)
	for s := range spaces {
		in := d.Client().Space(fmt.Sprint("shop-", s))
		for i := range orders {
			key := fmt.Sprintf("s%d-%d", s, i)
			if err := buy.Call(ctx, in, settle.ID(key), key); err != nil {
				t.Fatal(err)
			}
		}
		if err := approve.Complete(ctx, in, fmt.Sprintf("s%d-0", s), 1); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		d.KillWorker(d.Workers()[0])
		if _, err := d.AddWorker(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for s := range spaces {
		for rows, err := range ended.Watch(ctx, d.Client().Space(fmt.Sprint("shop-", s))) {
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, l := range rows.Value {
				n += len(l)
			}
			if n < 2*orders {
				continue
			}
			for key, l := range rows.Value {
				want := "approve DeadlineError"
				if strings.HasSuffix(key, "-0") {
					want = "approve done"
				}
				if text := strings.Join(l, ", "); len(l) != 2 || !strings.Contains(text, want) || !strings.Contains(text, "charge DeadlineError") {
					t.Errorf("%s: %s", key, text)
				}
			}
			break
		}
	}
}
