package space

import (
	"fmt"
	"slices"

	"github.com/settlehq/settle/model"
)

// firstRuns is the number of runs of a function that are rehearsed more often, see Config.Rehearsals.
const firstRuns = 3

// rehearsals repeat runs and attempts and compare the results.
type rehearsals struct {
	*transactions
	rehearsed map[string]int // see repetitions
	// sample is the number of runs of a computation of which one is repeated although CheckIdempotency is off, 0 for
	// none.
	sample uint64
}

// sampled reports whether the last run of a node is repeated although CheckIdempotency is off.
func (r *rehearsals) sampled(n *node) bool { return r.sample != 0 && n.runs%r.sample == 0 }

// repetitions returns how often a run of a function is repeated.
func (r *rehearsals) repetitions(who string) int {
	if r.rehearsed == nil {
		r.rehearsed = map[string]int{}
	}
	r.rehearsed[who]++
	if r.rehearsed[who] > firstRuns {
		return 1
	}
	return max(1, r.cfg.Rehearsals)
}

// validate repeats a run that has just been applied, and reports a violation if a repetition would have
// changed anything. Nothing of the repetition is kept. One that fails is ignored, because functions may fail.
// after is what the run has changed.
func (r *rehearsals) validate(n *node, after []docValue, v model.Value) {
	switch {
	case n.kind != Computation || !r.cfg.CheckIdempotency && !r.sampled(n):
		return
	case n.status != Clean:
		return // nodes that it pulled have changed its reads, and the repetition would see that
	}
	moved := slices.ContainsFunc(after, func(w docValue) bool {
		return slices.ContainsFunc(n.deps, func(d *dep) bool { return d.doc == w.doc && d.indexed })
	})
	for range r.repetitions(n.by()) {
		if different := r.repeat(n, v); len(different) > 0 {
			r.violated(Violation{Node: n.id(), Differences: different, Moved: moved}, int(n.runs))
			return
		}
	}
}

// repeat repeats a run with the result v, and returns what the repetition would change.
func (r *rehearsals) repeat(n *node, v model.Value) (out []Difference) {
	r.nested++ // for a transaction of its own
	again := r.begin(n)
	again.rehearsal = true
	u, err := callNode(n, again)
	r.nested--
	if err != nil || again.err != nil || again.missing != nil {
		return nil
	}
	if d := n.own.doc; d != nil && !model.Equal(u, v) {
		out = differences(d.key.doc, v, u)
	}
	for _, w := range again.after {
		out = append(out, differences(w.doc.key.doc, w.doc.value, w.value)...)
	}
	return out
}

// rehearse repeats an attempt that has ended and is not applied yet, and reports a violation if the
// repetition differs. Nothing of the repetition is kept.
func (r *rehearsals) rehearse(h Handler, tx *transaction, ev *model.Event, v model.Value) {
	if !r.cfg.CheckIdempotency || tx.stale != nil || tx.missing != nil {
		return
	}
	for range r.repetitions("handler of " + ev.Stream) {
		if different := r.attemptAgain(h, tx, ev, v); len(different) > 0 {
			head, _ := r.ledger.HeadInfo()
			r.violated(Violation{Stream: ev.Stream, Event: ev.ID, Differences: different}, head.Attempts+1)
			return
		}
	}
}

// attemptAgain repeats an attempt, and returns the differences from the first, whose results are tx and v.
func (r *rehearsals) attemptAgain(h Handler, tx *transaction, ev *model.Event, v model.Value) []Difference {
	r.nested++
	again := r.begin(nil)
	again.attempt.Event, again.rehearsal = ev, true
	handed := *ev
	u, err := callHandler(h, again, &handed)
	r.nested--
	if err == nil {
		err = again.err
	}
	if err != nil {
		return []Difference{{Place: "result", First: v, Second: model.String("error: " + err.Error())}}
	}
	var out []Difference
	if !model.Equal(u, v) {
		out = differences("result", v, u)
	}
	for _, w := range tx.after {
		out = append(out, differences(w.doc.key.doc, w.value, again.current(w.doc))...)
	}
	for _, w := range again.after {
		if tx.place(w.doc) < 0 {
			out = append(out, differences(w.doc.key.doc, w.doc.value, w.value)...)
		}
	}
	return append(out, differentSends(tx.attempt.Sends, again.attempt.Sends)...)
}

// differentSends returns the differences between the sends of two attempts.
func differentSends(first, second []model.Send) (out []Difference) {
	for i := range max(len(first), len(second)) {
		was, v := sendAt(first, i)
		is, u := sendAt(second, i)
		switch {
		case was == is && model.Equal(v, u):
		case was == is:
			out = append(out, Difference{was, v, u})
		default:
			if was != "" {
				out = append(out, Difference{Place: was, First: v})
			}
			if is != "" {
				out = append(out, Difference{Place: is, Second: u})
			}
		}
	}
	return out
}

// sendAt returns the name of the i-th send, with its destination and time, and its payload; "" if there is
// none.
func sendAt(sends []model.Send, i int) (string, model.Value) {
	if i >= len(sends) {
		return "", model.Value{}
	}
	s := &sends[i]
	place := fmt.Sprintf("send %d to %s/%s", i+1, s.To, s.Stream)
	if s.Timer != "" {
		place += ", timer " + s.Timer
	}
	if s.NotBefore != 0 {
		place += fmt.Sprintf(", not before %d", s.NotBefore)
	}
	if s.Payload.IsAbsent() {
		return place, model.Null()
	}
	return place, s.Payload
}

// differences returns the differences between two values of a document, key by key.
func differences(doc string, first, second model.Value) []Difference {
	var out []Difference
	for _, w := range model.Diff(doc, first, second) {
		out = append(out, Difference{Place: doc + w.Path.String(), First: first.At(w.Path), Second: second.At(w.Path)})
	}
	return out
}

func (r *rehearsals) violated(v Violation, attempt int) {
	r.graph.stats.Violations++
	if f := r.cfg.Trace.Violated; f != nil {
		f(v)
	}
	r.hooks.report(ErrorInfo{Node: v.Node, Stream: v.Stream, Event: v.Event, Err: &IdempotencyError{v}, Attempt: attempt})
}
