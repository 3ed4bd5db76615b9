package test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// requests counts the requests of its connections to the JetStream API, and what they tell the server about subscriptions.
type requests struct {
	server       nats.InProcessConnProvider
	asked, inbox atomic.Int64
}

func (r *requests) InProcessConn() (net.Conn, error) {
	c, err := r.server.InProcessConn()
	return &requestConn{c, r}, err
}

type requestConn struct {
	net.Conn
	r *requests
}

func (c *requestConn) Write(p []byte) (int, error) {
	c.r.asked.Add(int64(bytes.Count(p, []byte("PUB $JS.API."))))
	c.r.inbox.Add(int64(bytes.Count(p, []byte("SUB _INBOX"))))
	return c.Conn.Write(p)
}

// dormant stores spaces with one document, a checkpoint and nothing behind it.
func dormant(ctx context.Context, t *testing.T, b *bus.Bus, n int) {
	t.Helper()
	var stored sync.WaitGroup
	for i := range n {
		name := fmt.Sprintf("s%d", i)
		c := &model.Commit{Version: model.CommitVersion, Space: name, Runtime: "old", Takeover: true}
		stored.Add(1)
		b.Append(model.Append{Space: name, ID: c.ID(), Data: model.AppendCommit(nil, c, nil)}, func(seq uint64, err error) {
			go func() { // ends with the save
				defer stored.Done()
				data, encoding := (&model.Mark{Version: model.MarkVersion, Epoch: seq, Owner: "old"}).Encode()
				if err == nil {
					err = encoding
				}
				if err == nil {
					err = b.SaveState(ctx, name, []model.StateDoc{{Doc: "n", Data: []byte("1"), Seq: seq}}, &model.StateDoc{Data: data, Seq: seq})
				}
				if err != nil {
					t.Error(err)
				}
			}()
		})
	}
	stored.Wait()
}

// To activate a space for an event takes two reads, of its state and the head of its log, and no subscription, however many
// other spaces there are: the mark has the head, so the log is not searched for more.
func TestActivation_CostsTheSameAmongAnyNumberOfSpaces(t *testing.T) {
	t.Parallel()
	p := space.NewProgram("adding")
	err := p.Handle("add", func(tx *space.Tx, _ *model.Event) (model.Value, error) {
		n, _ := tx.Get("n").AsInt()
		tx.Set("n", model.Int(n+1))
		return model.Value{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, spaces := range []int{1000, 5_000} {
		ctx, cancel := context.WithCancel(testContext(t))
		server := natstest.StartServer(t, embedded.Config{})
		admin, spy := countedBus(ctx, t, server, nil), &requests{server: server}
		if err := admin.Provision(ctx); err != nil {
			t.Fatal(err)
		}
		dormant(ctx, t, admin, spaces)
		w, err := worker.New(countedBus(ctx, t, server, spy), worker.Config{ID: "w1", Programs: func(string) (*space.Program, error) { return p, nil }})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Start(ctx); err != nil {
			t.Fatal(err)
		}
		handled := make(chan string, spaces)
		var follows sync.WaitGroup
		follows.Go(func() { // ends with its context
			_ = admin.FollowLog(ctx, 0, 0, func(e model.LogEntry) {
				c, err := e.Commit()
				if err == nil && len(c.Txs) > 0 && c.Txs[0].Receipt != nil && c.Txs[0].Receipt.Outcome == model.Handled {
					handled <- e.Space
				}
			})
		})
		activate := func(from, to int) {
			for i := from; i < to; i++ {
				admin.Send(model.Message{Space: fmt.Sprintf("s%d", i*7%spaces), Stream: "add", ID: "e1", Payload: []byte("null")}, func(_ model.SendResult, err error) {
					if err != nil {
						t.Error(err)
					}
				})
			}
			for i := from; i < to; i++ {
				select {
				case <-handled:
				case <-ctx.Done():
					t.Fatal("not all events were handled")
				}
			}
		}
		const atOnce = 20 // fewer than are loaded at once: of the others, events are read again from the lane
		activate(0, atOnce)
		asked, inboxes := spy.asked.Load(), spy.inbox.Load()
		const n = 200
		for i := atOnce; i < atOnce+n; i += atOnce {
			activate(i, i+atOnce)
		}
		asked, inboxes = spy.asked.Load()-asked, spy.inbox.Load()-inboxes
		t.Logf("%d activations among %d spaces: %d requests to JetStream, %d subscriptions for answers", n, spaces, asked, inboxes)
		if asked > 2*n+n/10 || asked < n { // some are for the partition
			t.Errorf("%d activations among %d spaces took %d requests", n, spaces, asked)
		}
		if inboxes > 0 {
			t.Errorf("%d activations among %d spaces took %d subscriptions", n, spaces, inboxes)
		}
		if err := w.Stop(ctx); err != nil {
			t.Error(err)
		}
		cancel()
		follows.Wait()
	}
}

// countedBus connects to a server, through spy if that is not nil.
func countedBus(ctx context.Context, t *testing.T, server *embedded.Server, spy *requests) *bus.Bus {
	t.Helper()
	cfg := bus.Config{Server: server, Partitions: 1}
	if spy != nil {
		cfg = bus.Config{Partitions: 1, Options: []nats.Option{nats.InProcessServer(spy)}}
	}
	b, err := bus.Connect(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}
