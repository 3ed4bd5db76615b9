package space

import (
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space/inspect"
)

// While runs are recorded, the outcomes of computations are compared: one that has read what an earlier run has read,
// and has written something else, is not idempotent. Unlike a repetition, this finds what changes between two runs:
// a clock, a variable, another process. It costs a fingerprint of each value that is read.

// outcomeOf returns what a run has read and written. It is called before the run is applied. ok is false if the run is
// not to be compared: what it has read is not known, or has changed in the meantime.
func (r *runner) outcomeOf(n *node, tx *transaction, v model.Value) (o inspect.Outcome, ok bool) {
	if n.kind != Computation || tx.peeked || n.status != Clean {
		return o, false
	}
	o = inspect.Outcome{Node: n.id(), Code: n.spec, Value: v, Run: n.runs, Writes: foldNumber(tx.wrote, fingerprint(v, nil, false))}
	for _, d := range n.deps {
		if d.covered || d.declared {
			continue
		}
		if !d.doc.loaded {
			return o, false
		}
		o.Reads = foldNumber(foldText(foldText(o.Reads, d.doc.key.space), d.String()), fingerprint(d.doc.value, d.path, d.shallow))
	}
	return o, true
}

// compare reports a run that contradicts an earlier one.
func (r *runner) compare(o inspect.Outcome) {
	c := r.graph.recorder.Compare(o)
	if c == nil {
		return
	}
	place := o.Node
	if n := r.graph.byID[o.Node]; n != nil {
		place = n.shownAs()
	}
	r.rehearsals.violated(Violation{Node: o.Node, Differences: differences(place, c.First.Value, c.Second.Value), Runs: [2]uint64{c.First.Run, c.Second.Run}}, int(o.Run))
}

const (
	foldStart = 14695981039346656037
	foldPrime = 1099511628211
)

// foldNumber adds a number to a fingerprint.
func foldNumber(h, x uint64) uint64 {
	if h == 0 {
		h = foldStart
	}
	for range 8 {
		h = (h ^ x&0xff) * foldPrime
		x >>= 8
	}
	return h
}

// foldText adds a text to a fingerprint.
func foldText(h uint64, text string) uint64 {
	h = foldNumber(h, uint64(len(text)))
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * foldPrime
	}
	return h
}

// foldWrite adds a write to a fingerprint.
func foldWrite(h uint64, w *model.Write) uint64 {
	h = foldText(h, w.Doc)
	for _, step := range w.Path {
		h = foldText(h, step)
	}
	return foldNumber(h, fingerprint(w.Value, nil, false))
}
