package inspect

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Circle is a causal circle: each node wrote a document, which made the next one invalid,
// and the last one did that to the first.
type Circle []CausalStep

// CausalStep is a node and the document that it wrote.
type CausalStep struct{ Node, Doc string }

func (c Circle) String() string {
	var b strings.Builder
	for i, s := range c {
		if i == 0 {
			b.WriteString(s.Node)
		} else {
			b.WriteString(", which")
		}
		fmt.Fprintf(&b, " writes %s, which wakes %s", s.Doc, c[(i+1)%len(c)].Node)
	}
	return b.String()
}

// Marker is a sign that a space does not come to rest. It is no verdict: a long wave is
// deferred too, and still ends.
type Marker struct {
	// Pass is the pass that deferred nodes, Deferred how many, and Nodes the first of
	// them. All are zero if it is about a busy stretch.
	Pass     uint64
	Deferred int
	Nodes    []string
	// Until is the end of a busy stretch, Window how long it was and Busy how much of it
	// the space was at work.
	Until, Window, Busy time.Duration

	text string
}

func (m Marker) String() string { return m.text }

// Diagnose begins to record which node's write makes which node invalid, from nothing, or
// stops. History.Circles returns the result. To record costs a lookup for each invalidation;
// no more than the 4096 edges seen last are kept.
func (r *Recorder) Diagnose(on bool) {
	r.record(on)
	r.auto.recording = false
}

// DiagnoseWhenBusy makes the recording begin by itself when a busy stretch is found (see
// Busy), and stop when that is over.
func (r *Recorder) DiagnoseWhenBusy(on bool) { r.auto.on = on }

// Markers lists the latest signs that the space does not come to rest, oldest first.
func (r *Recorder) Markers() []Marker {
	var out []Marker
	for _, m := range r.markers() {
		out = append(out, Marker{
			Pass: m.pass, Deferred: m.count, Nodes: slices.Clone(m.nodes),
			Until: m.at, Window: m.window, Busy: m.busy, text: m.String(),
		})
	}
	return out
}

// Deferred takes in which nodes a pass held back at its end, none when an episode of passes that did has ended.
// It reports whether an episode begins by it.
func (r *Recorder) Deferred(pass uint64, nodes []string) (begins bool) {
	return r.deferred(pass, nodes)
}

// Busy records how long the last call of Settle took, which only the host knows: the core
// has no clock. It reports whether a busy stretch was found by that, which it does once
// per stretch: the space was at work for more than 30 % of more than 5 s.
func (r *Recorder) Busy(took time.Duration) (found bool) {
	d := &r.diagnosis
	found = d.busy(*r.now, took)
	switch a := &d.auto; {
	case found && a.on && d.causes == nil:
		d.record(true)
		a.recording = true
	case a.recording && !d.load.high:
		d.record(false)
		a.recording = false
	}
	return found
}

// record begins or ends a recording of causal edges. What one has found is kept until the
// next one begins.
func (d *diagnosis) record(on bool) {
	switch {
	case on:
		d.found = nil
	case d.causes != nil:
		d.found = d.circles()
	}
	d.traceCauses(on)
}
