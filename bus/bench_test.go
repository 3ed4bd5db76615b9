package bus_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/model"
)

// These are the two ways to write through: the one for a single server, and the one that shows the costs of
// everything else.
var fsyncs = map[string]embedded.Fsync{"fsync=always": embedded.FsyncAlways, "fsync=interval": embedded.FsyncInterval}

func eachFsync(b *testing.B, partitions int, bench func(*testing.B, *bus.Bus)) {
	for name, fsync := range fsyncs {
		b.Run(name, func(b *testing.B) {
			server := natstest.StartServer(b, embedded.Config{StoreDir: b.TempDir(), Fsync: fsync})
			c := connect(b, bus.Config{Server: server, Partitions: partitions})
			if err := c.Provision(b.Context()); err != nil {
				b.Fatal(err)
			}
			bench(b, c)
		})
	}
}

// BenchmarkAppend appends to 100 spaces, each with one append in flight.
func BenchmarkAppend(b *testing.B) {
	eachFsync(b, 8, func(b *testing.B, c *bus.Bus) { appendAll(b, c, 100, make([]byte, 512), b.N) })
}

// BenchmarkAppendOne appends to one space: the time until a commit is confirmed.
func BenchmarkAppendOne(b *testing.B) {
	eachFsync(b, 8, func(b *testing.B, c *bus.Bus) { appendAll(b, c, 1, make([]byte, 512), b.N) })
}

// appendAll makes n appends, spread over a number of spaces.
func appendAll(b testing.TB, c *bus.Bus, spaces int, data []byte, n int) {
	var all sync.WaitGroup
	for s := range spaces {
		mine := n / spaces
		if s < n%spaces {
			mine++
		}
		if mine == 0 {
			continue
		}
		all.Add(1)
		w := &appender{b: b, c: c, left: mine, done: all.Done, next: model.Append{Space: fmt.Sprintf("space-%d", s), ID: "bench/0/1", Data: data}}
		w.append()
	}
	all.Wait()
}

type appender struct {
	b    testing.TB
	c    *bus.Bus
	left int
	next model.Append
	done func()
}

func (w *appender) append() { w.c.Append(w.next, w.appended) }

func (w *appender) appended(seq uint64, err error) {
	if err != nil {
		w.b.Error(err)
	}
	w.next.Expect = seq
	if w.left--; w.left == 0 || err != nil {
		w.done()
		return
	}
	w.append()
}

// BenchmarkSend sends events with up to 1000 of them in flight.
func BenchmarkSend(b *testing.B) {
	eachFsync(b, 8, func(b *testing.B, c *bus.Bus) { sendAll(b, c, 100, make([]byte, 128), b.N) })
}

func sendAll(b testing.TB, c *bus.Bus, spaces int, payload []byte, n int) {
	window := make(chan struct{}, 1000)
	for i := range n {
		window <- struct{}{}
		m := model.Message{Space: fmt.Sprintf("space-%d", i%spaces), Stream: "add", ID: fmt.Sprintf("e%d", i), Payload: payload}
		c.Send(m, func(_ model.SendResult, err error) {
			if err != nil {
				b.Error(err)
			}
			<-window
		})
	}
	for range cap(window) {
		window <- struct{}{}
	}
}

// BenchmarkFollowLane follows existing events of a lane.
func BenchmarkFollowLane(b *testing.B) {
	c := benchBus(b)
	sendAll(b, c, 100, make([]byte, 128), b.N)
	b.ResetTimer()
	until(b, b.N, func(ctx context.Context, one func()) error {
		return c.FollowLane(ctx, 0, 0, func(model.Message) { one() })
	})
}

// BenchmarkFollowLog follows existing entries of a log.
func BenchmarkFollowLog(b *testing.B) {
	c := benchBus(b)
	appendAll(b, c, 100, make([]byte, 512), b.N)
	b.ResetTimer()
	until(b, b.N, func(ctx context.Context, one func()) error {
		return c.FollowLog(ctx, 0, 0, func(model.LogEntry) { one() })
	})
}

// BenchmarkFollowSpace measures the time from an append to its delivery, which starts the next append.
func BenchmarkFollowSpace(b *testing.B) {
	c := benchBus(b)
	next := model.Append{Space: "cart", ID: "bench/0/1", Data: make([]byte, 512)}
	delivered := make(chan uint64, 1)
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { // ends with ctx
		ended <- c.FollowSpace(ctx, "cart", 0, func(e model.LogEntry) { delivered <- e.Seq })
	}()
	for b.Loop() {
		c.Append(next, func(_ uint64, err error) {
			if err != nil {
				b.Error(err)
			}
		})
		next.Expect = <-delivered
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		b.Error(err)
	}
}

// BenchmarkReadLog reads a space's log in pages.
func BenchmarkReadLog(b *testing.B) {
	c := benchBus(b)
	appendAll(b, c, 1, make([]byte, 512), b.N)
	b.ResetTimer()
	found, err := c.ReadLog(b.Context(), "space-0", 0, b.N)
	if err != nil || len(found) != b.N {
		b.Fatal(len(found), err)
	}
}

// BenchmarkSaveState saves 100 documents and a mark.
func BenchmarkSaveState(b *testing.B) {
	c := benchBus(b)
	docs := make([]model.StateDoc, 100)
	for i := range docs {
		docs[i] = model.StateDoc{Doc: fmt.Sprintf("d%d", i), Data: make([]byte, 512)}
	}
	mark := model.StateDoc{Data: []byte("{}")}
	for b.Loop() {
		for i := range docs {
			docs[i].Seq++
		}
		mark.Seq++
		if err := c.SaveState(b.Context(), "cart", docs, &mark); err != nil {
			b.Fatal(err)
		}
	}
}

func benchBus(b *testing.B) *bus.Bus {
	c := connect(b, bus.Config{Server: natstest.StartServer(b, embedded.Config{}), Partitions: 1})
	if err := c.Provision(b.Context()); err != nil {
		b.Fatal(err)
	}
	return c
}

// until runs a subscription until it has made n deliveries.
func until(b testing.TB, n int, follow func(ctx context.Context, one func()) error) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	err := follow(ctx, func() {
		if n--; n == 0 {
			cancel()
		}
	})
	if ctx.Err() == nil {
		b.Fatal(err)
	}
}
