package inspect

import (
	"cmp"
	linked "container/list"
	"fmt"
	"slices"
	"strings"
	"time"
)

// diagnosisSettings are the limits of a diagnosis. Zero fields have defaults.
type diagnosisSettings struct {
	labels  int // nodes that a marker names; the rest are counted; 10
	history int // number of latest markers that are kept; 64
	edges   int // causal edges that are kept, the most recently seen; 4096

	// A space is busy if, in a window longer than busyWindow, it has run for more than busyPercent of the
	// window and for more than busyTime; 5 s, 30, 1 s.
	busyWindow  time.Duration
	busyPercent int
	busyTime    time.Duration
}

func (s diagnosisSettings) filled() diagnosisSettings {
	s.labels = cmp.Or(s.labels, 10)
	s.history = cmp.Or(s.history, 64)
	s.edges = cmp.Or(s.edges, 4096)
	s.busyWindow = cmp.Or(s.busyWindow, 5*time.Second)
	s.busyPercent = cmp.Or(s.busyPercent, 30)
	s.busyTime = cmp.Or(s.busyTime, time.Second)
	return s
}

// diagnosis finds out why a space does not converge. It records what passes do; no decision may depend on it
// (row U06). Its reports prove nothing: a long wave of changes is deferred, too, and still converges, so a
// marker lists the nodes and does not claim that they form a circle. Causal circles are recorded for that, on
// demand.
type diagnosis struct {
	settings  diagnosisSettings
	history   []settlingMarker
	deferring bool // the last pass deferred something
	load      busyWindow
	causes    *causalEdges // nil unless a recording is on
	found     [][]string   // the circles of the last recording
	auto      autoDiagnosis
}

func newDiagnosis(s diagnosisSettings) *diagnosis {
	return &diagnosis{settings: s.filled()}
}

// settlingMarker is one sign that the space does not converge: a pass that deferred nodes (rows E14, E15), or
// a busy window (U04).
type settlingMarker struct {
	pass  uint64   // 0 for a busy window
	count int      // number of nodes that the pass deferred
	nodes []string // the first of them

	at           time.Duration // the end of the busy window, 0 for a pass
	busy, window time.Duration
}

func (m settlingMarker) String() string {
	if m.count == 0 {
		return fmt.Sprintf("busy for %v of %v until %v", m.busy.Round(time.Millisecond), m.window.Round(time.Millisecond), m.at)
	}
	s := fmt.Sprintf("pass %d deferred %d: %s", m.pass, m.count, strings.Join(m.nodes, ", "))
	if more := m.count - len(m.nodes); more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}

// markers returns the history, oldest first.
func (d *diagnosis) markers() []settlingMarker { return slices.Clone(d.history) }

func (d *diagnosis) mark(m settlingMarker) {
	if len(d.history) == d.settings.history {
		d.history = slices.Delete(d.history, 0, 1)
	}
	d.history = append(d.history, m)
}

// deferred records which nodes a pass held back at its end, in the order in which they are to be listed. It
// reports whether to warn, which is once per episode; an episode ends with a pass that deferred nothing, and
// that pass leaves no marker (E14, E15).
func (d *diagnosis) deferred(pass uint64, nodes []string) (warn bool) {
	warn = !d.deferring && len(nodes) > 0
	d.deferring = len(nodes) > 0
	if d.deferring {
		named := slices.Clone(nodes[:min(len(nodes), d.settings.labels)])
		d.mark(settlingMarker{pass: pass, count: len(nodes), nodes: named})
	}
	return warn
}

// busyWindow is a stretch of time up to now, and the time that passes took in it.
type busyWindow struct {
	begun bool
	start time.Duration
	busy  time.Duration
	high  bool // an episode is under way, and has its marker
}

// busy records that a pass has just ended and how long it took. It reports whether to warn, which is once per
// episode (U04). An episode ends when the window slides while it is not busy: a load that hovers around the
// limit is one episode.
func (d *diagnosis) busy(now, took time.Duration) (warn bool) {
	w := &d.load
	w.add(now, took)
	window := now - w.start
	if window <= d.settings.busyWindow {
		return false
	}
	high := d.settings.high(w.busy, window)
	if warn = high && !w.high; warn {
		w.high = true
		d.mark(settlingMarker{at: now, busy: w.busy, window: window})
	}
	if w.slide(now, 2*d.settings.busyWindow) {
		w.high = high
	}
	return warn
}

func (s *diagnosisSettings) high(busy, window time.Duration) bool {
	return busy > s.busyTime && busy*100 > window*time.Duration(s.busyPercent)
}

func (w *busyWindow) add(now, took time.Duration) {
	if !w.begun {
		w.begun, w.start = true, now-took
	}
	w.busy += took
}

// slide halves a window, and its busy time with it, until it is no longer than limit. Halving keeps the
// ratio: if an hour's busy time were halved only once while the window shrank to seconds, a calm hour would
// look busy.
func (w *busyWindow) slide(now, limit time.Duration) (slid bool) {
	for now-w.start > limit {
		w.start += (now - w.start) / 2
		w.busy /= 2
		slid = true
	}
	return slid
}

// traceCauses starts to record causal edges afresh, or stops and discards them.
func (d *diagnosis) traceCauses(on bool) {
	d.causes = nil
	if on {
		d.causes = &causalEdges{at: map[causalEdge]*linked.Element{}}
	}
}

// caused records that writer wrote doc and so invalidated reader (S10). A writer "" is not a node, and is
// part of no circle. While no recording is on, this costs one branch.
func (d *diagnosis) caused(writer, doc, reader string) {
	if d.causes != nil && writer != "" {
		d.causes.add(causalEdge{writer, doc, reader}, d.settings.edges)
	}
}

// circles returns the causal circles of the recording, each once, as a node, the document that it wrote, the
// node that this invalidated, and so on; the last document is the one that the first node read. There can be
// far more circles than nodes, so not all are listed: for each node, in order of names, that lies on a circle
// but on none listed before, the shortest circle through it. So each node on a circle is on a listed one, and
// the result depends on the set of edges alone, not on their order.
func (d *diagnosis) circles() [][]string {
	if d.causes == nil {
		return nil
	}
	return newCausalGraph(d.causes.list()).circles()
}

// autoDiagnosis records causal edges during busy stretches.
type autoDiagnosis struct {
	on        bool
	recording bool // a recording is on, and was started automatically
}
