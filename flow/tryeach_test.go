package flow_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/flow"
	"github.com/settlehq/settle/settletest"
)

// outcomes are the outcomes of a TryEach in words.
func outcomes(all []flow.Outcome[string]) string {
	words := make([]string, len(all))
	for i, o := range all {
		words[i] = o.Value
		if o.Error != nil {
			words[i] = o.Error.Error()
		}
	}
	return strings.Join(words, ", ")
}

// A failed element leaves the others alone: the values are outcomes in the order of the list, and the run goes on.
func TestTryEach_CollectsFailures(t *testing.T) {
	t.Parallel()
	p := settle.NewProgram("mailing")
	w := flow.New(p)
	mail := flow.NewAction[string, string]("mail")
	mail.Perform(w, func(_ context.Context, to string) (string, error) {
		if to == "bob" {
			return "", &flow.Error{Type: "NoMailbox", Message: to}
		}
		return "sent to " + to, nil
	})
	type one struct{ To string }
	flow.Define(w, "one", "1", func(b *flow.Builder, in flow.Value[one]) flow.Value[string] {
		return flow.Call(b, mail, flow.Map(b, in, func(in one) string { return in.To }))
	})
	flow.Define(w, "all", "1", func(b *flow.Builder, in flow.Value[struct{ To []string }]) flow.Value[[]string] {
		to := flow.Map(b, in, func(in struct{ To []string }) []string { return append([]string(nil), in.To...) }) // nil is an empty list
		calls := flow.TryEach(b, mail, to, flow.Retry(2, time.Second, "Offline"))
		runs := flow.TryEachChild[string](b, "one", flow.Map(b, to, func(to []string) []one {
			all := make([]one, len(to))
			for i, name := range to {
				all[i].To = name
			}
			return all
		}))
		return flow.Map2(b, calls, runs, func(calls, runs []flow.Outcome[string]) []string { return []string{outcomes(calls), outcomes(runs)} })
	})
	if err := w.Register(); err != nil {
		t.Fatal(err)
	}
	s := settletest.New(t, p).Space("s")
	for run, c := range map[string]struct{ to, want []string }{
		"some": {[]string{"ann", "bob", "cho"}, []string{"sent to ann, NoMailbox: bob, sent to cho", "sent to ann, NoMailbox: bob, sent to cho"}},
		"none": {[]string{}, []string{"", ""}},
	} {
		s.Call("workflow-start", map[string]any{"workflow": "all", "run": run, "args": map[string]any{"To": c.to}})
		perform(s)
		s.Expect("run_"+run, "done", "state")
		s.Expect("run_"+run, c.want, "result")
	}
}
