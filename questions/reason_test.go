package questions

import (
	"context"
	"strings"
	"testing"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space/inspect"
	"github.com/settlehq/settle/worker"
)

// Each state of a node has a sentence of its own, with what it waits for.
func TestWhy_EachStateOfANodeHasAReason(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range []struct {
		node inspect.Node
		want string
	}{
		{inspect.Node{RunState: inspect.UpToDate}, "clean"},
		{inspect.Node{RunState: inspect.Running}, "is running"},
		{inspect.Node{RunState: inspect.Runnable}, "next pass"},
		{inspect.Node{RunState: inspect.Dormant, Status: inspect.Invalid}, "inputs have changed"},
		{inspect.Node{RunState: inspect.Dormant, Status: inspect.NeverRan}, "never ran"},
		{inspect.Node{RunState: inspect.Gated, Gate: "throttle"}, "held by its throttle until"},
		{inspect.Node{RunState: inspect.Waiting, Waits: "@other/doc"}, "document @other/doc"},
		{inspect.Node{RunState: inspect.Spent}, "over budget"},
		{inspect.Node{RunState: inspect.Halted, Halt: "it is closed"}, "runs nothing: it is closed"},
	} {
		text := reason(&inspect.Explanation{Node: c.node}, &worker.Inspected{})
		if !strings.Contains(text, c.want) || seen[text] {
			t.Errorf("%+v: %q", c.node, text)
		}
		seen[text] = true
	}
}

// What makes a node live is named with the nodes on the way, and so is what is missing.
func TestWhy_WhatNeedsANodeIsNamed(t *testing.T) {
	edges := func(ids ...string) (out []inspect.Edge) {
		for _, id := range ids {
			out = append(out, inspect.Edge{Node: id})
		}
		return out
	}
	for want, e := range map[string]inspect.Explanation{ // any order: each on its own
		"an effect": {Need: "an effect"},
		"read by b, which is read by c; document d is observed":    {Need: "an effect", Readers: edges("b", "c", inspect.ObserverOf("d"))},
		"document a is observed":                                   {Need: "an effect", Readers: edges(inspect.ObserverOf("a"))},
		"no node reads it, and it is not observed":                 {},
		"read by b, which no node reads and which is not observed": {Readers: edges("b")},
		"read by b, a circle that nothing outside of it needs":     {Readers: edges("b"), Round: true},
	} {
		if got := need(&e); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Values and texts in answers are bounded, and stay valid.
func TestQuestions_AnswersAreBounded(t *testing.T) {
	long := model.MustOf(strings.Repeat("ä", maxValue))
	if text, is := cutValue(long).AsString(); !is || len(text) > maxValue+len("…") || !strings.HasSuffix(text, "…") || strings.ContainsRune(text, '�') {
		t.Errorf("a long value is cut to %q", text)
	}
	if v := model.MustOf("short"); !model.Equal(cutValue(v), v) {
		t.Error("a short value is cut")
	}
	if text := clip(strings.Repeat("ä", maxText)); len(text) > maxText+len("…") || strings.ContainsRune(text, '�') {
		t.Errorf("a long text is cut to %q", text)
	}
}

// outlet collects the parts of an answer.
type outlet struct{ parts chan model.Part }

func (o outlet) Send(p model.Part) error { o.parts <- p; return nil }
func (outlet) Gone() <-chan struct{}     { return nil }
func (outlet) SensesGone() bool          { return false }
func (outlet) Close()                    {}

// A worker refuses questions beyond its limit, but not those that others have passed on: otherwise two workers whose askers wait for each other's
// answers would answer none.
func TestQuestions_ThoseThatArePassedOnAreCountedSeparately(t *testing.T) {
	s := NewServer(nil, nil, nil, nil)
	release := make(chan struct{})
	to := outlet{make(chan model.Part, 2*atOnce)}
	wait := func(context.Context) ([]byte, error) { <-release; return nil, nil }
	for range atOnce {
		s.open(s.taken, to, wait)
	}
	s.open(s.taken, to, wait)
	if p := <-to.parts; p.Err == nil || p.Err.Code != model.CodeUnavailable {
		t.Errorf("a question beyond the limit is answered with %+v", p)
	}
	s.open(s.passed, to, func(context.Context) ([]byte, error) { return []byte("yes"), nil })
	if p := <-to.parts; string(p.Data) != "yes" {
		t.Errorf("one that was passed on is answered with %+v", p)
	}
	close(release)
	s.tasks.Wait()
}
