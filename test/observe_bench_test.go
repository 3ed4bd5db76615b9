//go:build unix

package test

import (
	"context"
	"encoding/binary"
	"strconv"
	"syscall"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/internal/telemetry"
	"github.com/settlehq/settle/internal/telemetry/measure"
	"github.com/settlehq/settle/model"
)

// BenchmarkObserved handles events with an observed computation each, by a worker over a bus in memory: without metrics and traces, with
// each, and with both. An operation is an event.
func BenchmarkObserved(b *testing.B) {
	tracer := func(s sdktrace.Sampler) trace.Tracer {
		return sdktrace.NewTracerProvider(sdktrace.WithSampler(s)).Tracer(telemetry.Scope)
	}
	m, err := measure.Setup(b.Context(), "settle-bench", "b", "an address")
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		cfg  settle.WorkerConfig
	}{
		{"off", settle.WorkerConfig{}},
		{"metrics", settle.WorkerConfig{Meter: m.Meter}},
		{"metrics and 1 trace of 100", settle.WorkerConfig{Meter: m.Meter, Tracer: tracer(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(.01)))}},
		{"metrics and 1 trace of 100, known before there is a span", settle.WorkerConfig{Meter: m.Meter, Tracer: &hundredth{tracer(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(.01)))}}},
		{"metrics and all traces", settle.WorkerConfig{Meter: m.Meter, Tracer: tracer(sdktrace.AlwaysSample())}},
	} {
		b.Run(c.name, func(b *testing.B) { benchObserved(b, c.cfg) })
	}
}

// hundredth is a tracer that knows before there is a span that it records one trace of 100.
type hundredth struct{ trace.Tracer }

func (*hundredth) LeavesOut(parent trace.SpanContext, id trace.TraceID) bool {
	if parent.IsValid() {
		return !parent.IsSampled()
	}
	return binary.BigEndian.Uint64(id[8:])>>1 >= 1<<63/100
}

func benchObserved(b *testing.B, cfg settle.WorkerConfig) {
	bus := membus.NewServer(membus.Config{Partitions: 1}).Connect("a")
	defer bus.Kill()
	reached := make(chan int64, 1)
	p := settle.NewProgram("bench")
	p.Handle("add", func(tx *settle.Tx, _ *settle.Event) (settle.Value, error) {
		n, _ := tx.Get("n").AsInt()
		tx.Set("n", n+1)
		return settle.Value{}, nil
	})
	p.Compute("double", func(v *settle.View) (settle.Value, error) {
		n, _ := v.Get("n").AsInt()
		return settle.ValueOf(2 * n)
	})
	cfg.ID, cfg.Programs = "b", settle.Always(p)
	w, err := settle.StartWorker(b.Context(), bus, cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer w.Kill()
	client, err := settle.NewClient(bus, settle.ClientConfig{ID: "c"})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	watched := make(chan struct{})
	goal := make(chan int64, 1)
	go func() { // ends with ctx
		defer close(watched)
		last := int64(-1)
		for u, err := range client.Space("s").Watch(ctx, "double") {
			if err != nil {
				return
			}
			n, _ := u.Value.AsInt()
			if last < 0 {
				last = <-goal
			}
			if n == last {
				reached <- n
				last = -1
			}
		}
	}()
	defer func() {
		stop()
		<-watched
	}()
	sent := 0
	send := func(events int) {
		goal <- 2 * int64(sent+events)
		for range events {
			sent++
			bus.Send(model.Message{Space: "s", Stream: "add", ID: strconv.Itoa(sent)}, func(_ model.SendResult, err error) {
				if err != nil {
					b.Error(err)
				}
			})
		}
		select {
		case <-reached:
		case <-b.Context().Done():
			b.Fatal("the events are not handled")
		}
	}
	send(1)
	b.ReportAllocs()
	b.ResetTimer()
	began := usedCPU(b)
	for left := b.N; left > 0; left -= 500 {
		send(min(left, 500))
	}
	b.ReportMetric(float64((usedCPU(b)-began).Nanoseconds())/float64(b.N), "cpu-ns/op")
}

// usedCPU returns the processor time of the process, which other processes disturb less than they do the time of day.
func usedCPU(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
