package worker_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// A power cut can cost a stream its last messages while others keep theirs. What is
// then sent looks like something old, or follows a head that is gone: the worker
// refuses to serve instead of dropping it or waiting for ever.
func TestAStreamThatIsShorterThanKnownIsRefused(t *testing.T) {
	for _, c := range []struct {
		what string
		lose func(t *testing.T, b *membus.Bus)
		want string
	}{
		{"the lane", func(t *testing.T, b *membus.Bus) {
			if err := b.SavePosition(t.Context(), 0, "lane", 50); err != nil {
				t.Fatal(err)
			}
		}, "the lane ends at 1, but its events were handled up to 50"},
		{"the log", func(t *testing.T, b *membus.Bus) {
			data, err := (&model.Mark{Version: model.MarkVersion}).Encode()
			if err != nil {
				t.Fatal(err)
			}
			if err := b.SaveState(t.Context(), "a", nil, &model.StateDoc{Data: data, Seq: 50}); err != nil {
				t.Fatal(err)
			}
		}, "the log ends at 0, but is known up to 50"},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := membus.NewServer(membus.Config{Partitions: 1})
				client := server.Connect("client")
				defer client.Close()
				client.Send(model.Message{Space: "a", Stream: "add", ID: "e1"}, func(model.SendResult, error) {})
				synctest.Wait()
				c.lose(t, client)

				b := server.Connect("w1")
				defer b.Close()
				var log logged
				w := startLogged(t, b, &log)
				time.Sleep(3 * time.Second)
				if !strings.Contains(log.String(), c.want) {
					t.Errorf("the worker said %q, want %q in it", log.String(), c.want)
				}
				if head, _ := client.Head(t.Context(), "a"); head != 0 {
					t.Errorf("it appended up to %d all the same", head)
				}
				if err := w.Stop(context.Background()); err != nil {
					t.Errorf("stop: %v", err)
				}
			})
		})
	}
}

func startLogged(t *testing.T, b port.Bus, log *logged) *worker.Worker {
	t.Helper()
	p := counting(t)
	w, err := worker.New(b, worker.Config{
		ID: "w1", Programs: func(string) (*space.Program, error) { return p, nil },
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err == nil {
		err = w.Start(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// logged keeps what was logged.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}
