package worker

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/settlehq/settle/internal/telemetry"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
	"github.com/settlehq/settle/space"
)

// leaver is a tracer that knows before there is a span that all is left out, and counts the spans that it is asked for.
type leaver struct {
	noop.Tracer
	spans int
}

func (l *leaver) Start(ctx context.Context, name string, o ...trace.SpanStartOption) (context.Context, trace.Span) {
	l.spans++
	return l.Tracer.Start(ctx, name, o...)
}

func (*leaver) LeavesOut(parent trace.SpanContext, _ trace.TraceID) bool { return !parent.IsSampled() }

// An event that is known to be left out before there is a span costs one text for the pass that handles it and others: the tracer is not asked for a span, and
// nothing is stored with its transaction.
func TestLeftOut_AnEventCostsNoSpanAndNoContext(t *testing.T) {
	tracer := &leaver{}
	s := spans{tracer: tracer, head: tracer, space: "s", stored: func(uint64) (time.Time, bool) { return time.Now(), true }}
	var events []*model.Event
	for n := range 100 {
		events = append(events, &model.Event{Space: "s", Stream: "put", ID: fmt.Sprint("e", n), Lane: uint64(n + 1)})
	}
	info := space.HandleInfo{Receipt: &model.Receipt{Outcome: model.Handled}}
	handleAll := func() {
		s.beginPass(time.Now())
		for _, ev := range events {
			if got := s.handleStart(ev, true); got != (model.Trace{}) {
				t.Errorf("with the event is stored %v", got)
			}
			s.handleEnd(&info)
		}
		s.passEnd(space.PassInfo{Events: len(events)})
		if by, did := s.endPass(); !did || !telemetry.LeftOut(by) {
			t.Errorf("the pass has the context %v", by)
		}
	}
	if got := testing.AllocsPerRun(100, handleAll); got > 1 {
		t.Errorf("a pass with 100 events that are left out has %v allocations", got)
	}
	if tracer.spans > 0 {
		t.Errorf("the tracer was asked for %d spans", tracer.spans)
	}
}

// What an event that is left out causes has one trace: what it sends, tasks, code that it calls, the commit, lines of the log, and its next attempt.
func TestLeftOut_WhatFollowsHasOneTrace(t *testing.T) {
	tracer := &leaver{}
	for _, c := range []struct {
		name string
		ev   model.Event
		want string // id of the trace
	}{
		{"an event without a sender's context", model.Event{Stream: "put", ID: "e"}, telemetry.OriginOf("s", "put", "e").ID().String()},
		{"one with another's", model.Event{Stream: "put", ID: "e", Trace: model.Trace{Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"}}, "4bf92f3577b34da6a3ce929d0e0e4736"},
		{"one with an invalid context", model.Event{Stream: "put", ID: "e", Trace: model.Trace{Parent: "00-1-2-01"}}, telemetry.OriginOf("s", "put", "e").ID().String()},
		{"one that has waited for a time, of a sender that is recorded", model.Event{Stream: "put", ID: "e", NotBefore: 1, Trace: model.Trace{Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}}, telemetry.OriginOf("s", "put", "e").ID().String()},
	} {
		for attempt := range 2 {
			s := spans{tracer: tracer, head: tracer, space: "s", stored: func(uint64) (time.Time, bool) { return time.Now(), true }}
			c.ev.Trace.Baggage = "tenant=seven"
			recorded := s.handleStart(&c.ev, true)
			s.taskStarted("ship", "1")
			got := map[string]model.Trace{
				"what it sends": s.passedOn(&c.ev, recorded), "the task": s.tasks.of[taskName{"ship", "1"}], "code": telemetry.Of(s.context(t.Context())),
			}
			s.handleEnd(&space.HandleInfo{})
			tx := model.Tx{By: receipts.By("put"), Receipt: &model.Receipt{Event: "e"}, Trace: recorded}
			got["the commit"], _ = s.beginCommit(&model.Commit{Txs: []model.Tx{tx}}, model.Trace{})
			got["a line of the log"] = s.passedOn(&c.ev, recorded)
			for what, of := range got {
				if len(of.Parent) != 55 || of.Parent[3:35] != c.want || !telemetry.LeftOut(of) || what != "code" && of.Baggage != "tenant=seven" {
					t.Errorf("%s, attempt %d: %s has the context %v, and should be left out of %s", c.name, attempt+1, what, of, c.want)
				}
			}
			if s.handleCtx != nil || s.early != nil {
				t.Errorf("%s: the context outlives the attempt", c.name)
			}
		}
	}
	if tracer.spans > 0 {
		t.Errorf("the tracer was asked for %d spans", tracer.spans)
	}
}
