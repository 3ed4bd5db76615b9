package test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/internal/telemetry"
	"github.com/settlehq/settle/model"
)

// halved is a tracer that records half of the traces, as parentbased_traceidratio does, and knows it before there is a span.
type halved struct {
	trace.Tracer
	asked atomic.Int64 // for spans that are not recorded
}

func (h *halved) LeavesOut(parent trace.SpanContext, id trace.TraceID) bool {
	if parent.IsValid() {
		return !parent.IsSampled()
	}
	return id[8] >= 0x80
}

// leftOutSampler counts what halved could have known.
type leftOutSampler struct {
	sdktrace.Sampler
	asked *atomic.Int64
}

func (s leftOutSampler) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	r := s.Sampler.ShouldSample(p)
	if r.Decision == sdktrace.Drop && !strings.HasPrefix(p.Name, "activate") && p.Name != "commit" && p.Name != "pass" && !strings.HasPrefix(p.Name, "take over") && p.Name != "checkpoint" {
		s.asked.Add(1)
	}
	return r
}

// lines is a log that tests read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) of(what string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, what) {
			found = append(found, line)
		}
	}
	return found
}

// A tracer that knows before there is a span which traces are left out is not asked for spans of those, in the space of the event and in the next. Nothing about them is stored but
// with what they send. The others are whole, over two spaces, and all lines of the log about one cause have the id of its trace.
func TestTrace_WhatIsKnownToBeLeftOutMakesNoSpan(t *testing.T) {
	t.Parallel()
	server := membus.NewServer(membus.Config{Partitions: 1})
	bus := server.Connect("a")
	defer bus.Kill()
	p := settle.NewProgram("relay")
	p.Handle("order", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
		tx.Set("n", ev.ID)
		tx.Send("store", "pack", ev.ID)
		return settle.Value{}, nil
	})
	p.Handle("pack", func(_ *settle.Tx, ev *settle.Event) (settle.Value, error) {
		return settle.Value{}, fmt.Errorf("no room for %s", ev.Payload)
	})
	p.Handle("note", func(*settle.Tx, *settle.Event) (settle.Value, error) { return settle.Value{}, nil })
	ended, h, log := tracetest.NewSpanRecorder(), &halved{}, &lines{}
	sampler := leftOutSampler{sdktrace.ParentBased(sdktrace.TraceIDRatioBased(.5)), &h.asked}
	h.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler), sdktrace.WithSpanProcessor(ended)).Tracer("test")
	d, err := settle.StartWorker(t.Context(), bus, settle.WorkerConfig{ID: "w", Programs: settle.Always(p), Tracer: h, Logger: slog.New(telemetry.WithTraces(slog.NewTextHandler(log, nil)))})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Kill()
	coordBus := server.Connect("c")
	defer coordBus.Kill()
	c := coordinator.New(coordBus, coordinator.Config{ID: "c", Tracer: h})
	c.Start()
	defer c.Stop()
	const events = 16
	recorded := 0
	for n := range events {
		for _, stream := range []string{"order", "note"} {
			bus.Send(model.Message{Space: "shop", Stream: stream, ID: fmt.Sprint("e", n)}, func(_ model.SendResult, err error) {
				if err != nil {
					t.Error(err)
				}
			})
			if stream == "order" && !h.LeavesOut(trace.SpanContext{}, telemetry.OriginOf("shop", stream, fmt.Sprint("e", n)).ID()) {
				recorded++
			}
		}
	}
	if recorded == 0 || recorded == events {
		t.Fatalf("%d traces of %d are recorded, so that nothing is compared", recorded, events)
	}
	until(t, func() bool { return len(log.of("no room")) == events })
	names := func() map[string]map[string]bool {
		of := map[string]map[string]bool{}
		for _, s := range ended.Ended() {
			id := s.SpanContext().TraceID().String()
			if of[id] == nil {
				of[id] = map[string]bool{}
			}
			of[id][s.Name()] = true
		}
		return of
	}
	for n := range events {
		o := telemetry.OriginOf("shop", "order", fmt.Sprint("e", n))
		id, left := o.ID().String(), h.LeavesOut(trace.SpanContext{}, o.ID())
		if got := log.of("no room for \\\"e" + fmt.Sprint(n) + "\\\""); len(got) != 1 || !strings.Contains(got[0], "trace_id="+id) {
			t.Errorf("the line about the event that e%d has sent is %q, and its trace is %s", n, got, id)
		}
		if left {
			if of := names()[id]; of != nil {
				t.Errorf("e%d is left out, and has spans %v", n, of)
			}
			continue
		}
		until(t, func() bool {
			of := names()[id]
			return of["lane order"] && of["handle order"] && of["release pack"] && of["lane pack"] && of["handle pack"]
		})
	}
	if n := h.asked.Load(); n > 0 {
		t.Errorf("the tracer was asked %d times for a span of what it leaves out", n)
	}
	log1, err := bus.ReadLog(t.Context(), "shop", 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range log1 {
		commit, err := model.DecodeCommit(e.Data)
		if err != nil {
			t.Fatal(err)
		}
		for _, tx := range commit.Txs {
			if strings.HasSuffix(tx.Trace.Parent, "-00") {
				t.Errorf("with the transaction %d is stored %s", tx.N, tx.Trace.Parent)
			}
			for _, s := range tx.Sends {
				if !telemetry.Names(s.Trace) {
					t.Errorf("what transaction %d sends has the context %v", tx.N, s.Trace)
				}
			}
		}
	}
}
