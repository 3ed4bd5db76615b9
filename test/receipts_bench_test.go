package test

import (
	"context"
	"fmt"
	"testing"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/receipts"
)

// benchLog returns a space with n commits, each of which has handled one event, on an
// embedded server.
func benchLog(b *testing.B, n int) *bus.Bus {
	b.Helper()
	server := natstest.StartServer(b, embedded.Config{})
	conn, err := bus.Connect(b.Context(), bus.Config{Server: server, Partitions: 1})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(conn.Close)
	if err := conn.Provision(b.Context()); err != nil {
		b.Fatal(err)
	}
	type answer struct {
		seq uint64
		err error
	}
	lane, log := make(chan error, n), make(chan answer, 1)
	for i := range n {
		conn.Send(model.Message{Space: "s", Stream: "add", ID: fmt.Sprint("e", i)}, func(_ model.SendResult, err error) { lane <- err })
		if i%500 == 499 || i == n-1 {
			for range i%500 + 1 {
				if err := <-lane; err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	events, err := conn.ReadLane(b.Context(), "s", 0, n)
	if err != nil || len(events) != n {
		b.Fatalf("%d events, %v", len(events), err)
	}
	head := uint64(0)
	commit := func(c *model.Commit) {
		c.Version, c.Space, c.Runtime = model.CommitVersion, "s", "w1"
		conn.Append(model.Append{Space: "s", ID: c.ID(), Expect: head, Data: model.AppendCommit(nil, c, nil)}, func(seq uint64, err error) { log <- answer{seq, err} })
		a := <-log
		if a.err != nil {
			b.Fatal(a.err)
		}
		head = a.seq
	}
	commit(&model.Commit{Takeover: true})
	for i, ev := range events {
		rc := &model.Receipt{Event: ev.ID, Lane: ev.Seq, Outcome: model.Handled, Result: model.Int(int64(i))}
		commit(&model.Commit{
			Epoch: 1, Attempt: uint64(i + 1), Cursor: model.Cursor{Floor: ev.Seq},
			Txs: []model.Tx{{N: uint64(i + 1), By: receipts.By("add"), Receipt: rc}},
		})
	}
	return conn
}

// readThrough looks up a receipt by reading the log, as was done before the log was its own index.
func readThrough(ctx context.Context, log port.Log, key receipts.Key) (*model.Tx, error) {
	const page = 256
	for after := uint64(0); ; {
		entries, err := log.ReadLog(ctx, "s", after, page)
		if err != nil || len(entries) == 0 {
			return nil, err
		}
		for _, e := range entries {
			after = e.Seq
			c, err := model.DecodeCommit(e.Data)
			if err != nil {
				return nil, err
			}
			if tx := receipts.Find(c, key); tx != nil {
				return tx, nil
			}
		}
	}
}

// BenchmarkFindReceipt looks for receipts that lie evenly in a log of 100,000 commits,
// on an embedded server: by bisection, and by reading the log, as was done before.
func BenchmarkFindReceipt(b *testing.B) {
	const n = 100_000
	conn := benchLog(b, n)
	event := func(i int) string { return fmt.Sprint("e", (i*7919+n/2)%n) }
	b.Run("bisection", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if h, err := history.FindReceipt(b.Context(), conn, "s", "add", event(i)); err != nil || h == nil {
				b.Fatalf("%v, %v", h, err)
			}
		}
	})
	b.Run("reading", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if tx, err := readThrough(b.Context(), conn, receipts.Key{Stream: "add", ID: event(i)}); err != nil || tx == nil {
				b.Fatalf("%v, %v", tx, err)
			}
		}
	})
}
