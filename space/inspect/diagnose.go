package inspect

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Circle is a causal circle: each node wrote a document that invalidated the next node, and the last node
// invalidated the first.
type Circle []CausalStep

// CausalStep is a node and a document that it wrote.
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

// Marker is a sign that a space may not converge. It proves nothing: a long wave of changes is deferred, too,
// and still ends.
type Marker struct {
	// Pass is the pass that deferred nodes, Deferred their number, and Nodes the first of them. All are zero
	// if the marker is about a busy stretch.
	Pass     uint64
	Deferred int
	Nodes    []string
	// Until is the end of a busy stretch, Window its length, and Busy how long the space worked during it.
	Until, Window, Busy time.Duration

	text string
}

func (m Marker) String() string { return m.text }

// Diagnose starts or stops recording which node's write invalidates which node. Starting discards the
// previous recording. History.Circles returns the result. Recording costs a lookup per invalidation, and
// keeps the 4096 most recently seen edges.
func (r *Recorder) Diagnose(on bool) {
	r.record(on)
	r.auto.recording = false
}

// DiagnoseWhenBusy starts a recording automatically when a busy stretch is found (see Busy), and stops it
// when that is over.
func (r *Recorder) DiagnoseWhenBusy(on bool) { r.auto.on = on }

// Markers returns the latest signs that the space does not converge, oldest first.
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

// Deferred records which nodes a pass held back at its end, or none if an episode of such passes has ended.
// It reports whether a new episode begins.
func (r *Recorder) Deferred(pass uint64, nodes []string) (begins bool) {
	return r.deferred(pass, nodes)
}

// Busy records how long the last call of Settle took, which only the host knows: the core has no clock. It
// reports whether this reveals a busy stretch, which it does once per stretch: the space was at work for more
// than 30 % of more than 5 s.
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

// record starts or stops a recording of causal edges. The result of a recording is kept until the next one
// starts.
func (d *diagnosis) record(on bool) {
	switch {
	case on:
		d.found = nil
	case d.causes != nil:
		d.found = d.circles()
	}
	d.traceCauses(on)
}
