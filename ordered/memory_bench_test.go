package ordered_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/ordered"
)

// BenchmarkMemoryPerKey measures the memory that an idle key with one document takes in its server: the heap
// with all keys loaded, minus the heap after the server has ended.
//
//	go test ./ordered -run '^$' -bench MemoryPerKey -benchtime 1x
func BenchmarkMemoryPerKey(b *testing.B) {
	const keys = 100_000
	for range b.N {
		s := membus.NewServer(membus.Config{Partitions: 1, MaxPayload: 256 << 10})
		client := s.Connect("client")
		sent := make(chan error, keys)
		for i := range keys {
			m := model.Message{Space: fmt.Sprint("k", i), Stream: "add", ID: "e1", Payload: []byte("1")}
			client.Send(m, func(_ model.SendResult, err error) { sent <- err })
		}
		for range keys {
			check(b, <-sent)
		}
		bus := s.Connect("o1")
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		cfg := ordered.Config{
			Name: "o1", Idle: time.Hour, MaxAwake: 2 * keys, Checkpoint: time.Second, Coordinated: true, Handover: time.Minute,
			Handlers: map[string]ordered.Handler{"add": ordered.On(func(tx *ordered.Tx, by int64) (int64, error) {
				n, _ := tx.Get("n").AsInt()
				tx.Set("n", n+by)
				return n + by, nil
			})},
		}
		go func() { ended <- ordered.Serve(ctx, bus, cfg) }() // ends with ctx
		for s.LoadPosition(0, "lane") < keys {
			_ = pause.For(ctx, 100*time.Millisecond)
		}
		awake, stacks := memory()
		cancel()
		check(b, <-ended)
		bus.Close()
		left, stacksLeft := memory()
		b.ReportMetric(float64(awake-left)/keys, "B/key")
		b.ReportMetric(float64(stacks-stacksLeft)/keys, "stack-B/key")
		client.Close()
	}
}

// memory returns the sizes of the heap and the stacks after a collection.
func memory() (heap, stacks int64) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc), int64(m.StackInuse)
}
