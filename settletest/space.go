package settletest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/internal/simkit"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/space/inspect"
)

// Space is one space of a world. It is a settle.Reader and a settle.Writer, so cells, derived documents and
// rows are read from it as from a transaction: stats.Get(s). As for any client, a read creates demand:
// derived documents are computed first.
type Space struct {
	w *World
	s *simkit.Space
	// by is the principal in whose name events are sent to it.
	by string
}

var _ settle.Writer = (*Space)(nil)

// Space returns the name of the space.
func (s *Space) Space() string { return s.s.Name() }

// World returns the world of the space.
func (s *Space) World() *World { return s.w }

// As returns the space for events that a principal sends to it: tx.Event().By() is its name in their handlers. Rules about
// access are not part of a world, so the event is handled.
func (s *Space) As(principal string) *Space { return &Space{s.w, s.s, principal} }

// Send sends an event to the space, runs everything that follows from it in any space at this time,
// and returns the receipt, whatever its outcome. The receipt of an event that waits for a time or a
// retry has no Outcome yet.
func (s *Space) Send(stream string, payload any) model.Receipt {
	s.w.t.Helper()
	return s.SendID(stream, settle.EventID{}, payload)
}

// SendID is Send under an id. Sending again under the same id has no effect and returns the first
// receipt; with another payload it ends the test, because clients get an error.
func (s *Space) SendID(stream string, id settle.EventID, payload any) model.Receipt {
	s.w.t.Helper()
	rc, _ := s.send(stream, id.String(), payload, time.Time{})
	return rc
}

// SendAt is Send for an event that waits until a time.
func (s *Space) SendAt(at time.Time, stream string, payload any) model.Receipt {
	s.w.t.Helper()
	rc, _ := s.send(stream, "", payload, at)
	return rc
}

// Call is Send for an event that must be handled, and returns its result.
func (s *Space) Call(stream string, payload any) settle.Value {
	s.w.t.Helper()
	rc, ok := s.send(stream, "", payload, time.Time{})
	s.mustBeHandled(stream, rc, ok)
	return rc.Result
}

func (s *Space) send(stream, id string, payload any, at time.Time) (model.Receipt, bool) {
	s.w.t.Helper()
	v, err := settle.ValueOf(payload)
	if err != nil {
		s.w.t.Fatalf("settletest: send to %s/%s: %v", s.Space(), stream, err)
	}
	return s.sendTo(stream, id, v, at)
}

func (s *Space) sendTo(stream, id string, v settle.Value, at time.Time) (model.Receipt, bool) {
	s.w.t.Helper()
	rc, ok, err := s.s.SendAs(s.by, stream, id, v, at)
	s.w.check(err)
	return rc, ok
}

func (s *Space) tb() TB { return s.w.t }

// panicked returns the location where the handler of an event panicked, "" if it did not.
func (s *Space) panicked(stream, id string) string { return s.s.Panic(stream, id) }

func (s *Space) mustBeHandled(stream string, rc model.Receipt, ok bool) {
	s.w.t.Helper()
	mustBeHandled(s, stream, rc, ok)
}

// mustBeHandled ends the test if the event was not handled.
func mustBeHandled(s Subject, stream string, rc model.Receipt, ok bool) {
	s.tb().Helper()
	switch {
	case !ok:
		s.tb().Fatalf("settletest: event %s on %s of space %s is not handled yet\n%s", rc.Event, stream, s.Space(), indent(s.doubt("")))
	case rc.Outcome != model.Handled:
		text := fmt.Sprintf("settletest: event %s on %s of space %s %s: %s", rc.Event, stream, s.Space(), rc.Outcome, receipts.Reason(&rc))
		if where := s.panicked(stream, rc.Event); where != "" {
			text += "\n" + indent(where)
		}
		s.tb().Fatalf("%s", text)
	}
}

// Receipt returns the receipt of an event; false if it has not ended.
func (s *Space) Receipt(stream string, id settle.EventID) (model.Receipt, bool) {
	return s.s.Receipt(stream, model.EventIDOf(s.by, id.String()))
}

// Advance moves the time of the whole world forward.
func (s *Space) Advance(d time.Duration) {
	s.w.t.Helper()
	s.w.Advance(d)
}

// read runs f as an effect would be run.
func (s *Space) read(f func(tx *space.Tx)) {
	s.w.t.Helper()
	_, err := s.s.Read(func(tx *space.Tx) error { f(tx); return nil })
	s.w.check(err)
}

// Get reads a document, or the value at a path in it; absent if there is none. Derived documents
// are computed first.
func (s *Space) Get(doc string, path ...string) (v settle.Value) {
	s.w.t.Helper()
	s.read(func(tx *space.Tx) { v = tx.Get(doc, path...) })
	return v
}

// GetFrom reads a document of another space.
func (s *Space) GetFrom(other, doc string, path ...string) (v settle.Value) {
	s.w.t.Helper()
	s.read(func(tx *space.Tx) { v = tx.GetFrom(other, doc, path...) })
	return v
}

// GetShallow is Get: reads of a test create no dependency.
func (s *Space) GetShallow(doc string, path ...string) settle.Value {
	s.w.t.Helper()
	return s.Get(doc, path...)
}

// Peek reads without demand: a derived document is returned as it was last computed.
func (s *Space) Peek(doc string, path ...string) settle.Value { return s.s.Value(doc).At(path) }

// Link reads the link at a path itself, without following it.
func (s *Space) Link(doc string, path ...string) (l model.Link, ok bool) {
	s.w.t.Helper()
	s.read(func(tx *space.Tx) { l, ok = tx.Link(doc, path...) })
	return l, ok
}

// Follow reads what a link points to.
func (s *Space) Follow(l model.Link) (v settle.Value) {
	s.w.t.Helper()
	s.read(func(tx *space.Tx) { v = tx.Follow(l) })
	return v
}

// Set writes a document, or the value at a path in it, without an event, to prepare a test. stats.Set(s,
// Stats{...}) is the form for cells.
func (s *Space) Set(doc string, v any, path ...string) {
	s.w.t.Helper()
	s.w.check(s.s.Write(func(tx *space.Tx) error { tx.Set(doc, v, path...); return nil }))
}

// Delete removes a document, or the value at a path in it, without an event.
func (s *Space) Delete(doc string, path ...string) {
	s.w.t.Helper()
	s.w.check(s.s.Write(func(tx *space.Tx) error { tx.Delete(doc, path...); return nil }))
}

// Err returns nil: an error ends the test.
func (s *Space) Err() error { return nil }

// Fail ends the test. Cells call it for values that are not of their type.
func (s *Space) Fail(err error) {
	s.w.t.Helper()
	s.w.t.Fatalf("settletest: space %s: %v%s", s.Space(), err, here())
}

// Mark resets the counts of runs.
func (s *Space) Mark() { s.s.Mark() }

// Runs returns how often a node has run since the last Mark, or since the start; the second runs of
// the validator do not count. settle.DerivedRows.Node names the node of a row: the count is 0 for a
// row that is new and was not observed yet.
func (s *Space) Runs(node string) int {
	s.w.t.Helper()
	if n := s.s.Runs(node); n > 0 || s.s.Has(node) || s.mayCome(node) {
		return n
	}
	s.w.t.Fatalf("settletest: space %s has no node %s; it has %s", s.Space(), node, s.nodeNames())
	return 0
}

// mayCome reports whether node can be that of a row whose parent has yet to run.
func (s *Space) mayCome(node string) bool {
	return slices.ContainsFunc(s.s.Inspect().Nodes(), func(n inspect.Node) bool {
		key, its := strings.CutPrefix(node, n.ID+model.RowMark)
		return its && key != "" && n.Status != inspect.Clean && n.Kind == space.Computation.String()
	})
}

// Ran returns the nodes that have run since the last Mark, in order, once per run.
func (s *Space) Ran() []string { return s.s.Ran() }

// ExpectRuns fails the test if a node has not run n times since the last Mark.
func (s *Space) ExpectRuns(node string, n int) {
	s.w.t.Helper()
	if got := s.Runs(node); got != n {
		s.w.t.Errorf("settletest: node %s of space %s ran %s, want %d\n%s", node, s.Space(), times(got), n, indent(s.Why(node)))
	}
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// Why explains why a node ran last, why it does not run now, and what demands it.
func (s *Space) Why(node string) string {
	e, ok := s.s.Explain(node)
	if !ok {
		return fmt.Sprintf("there is no node %s; there are %s", node, s.nodeNames())
	}
	return e.String()
}

// Pending describes the work left at this time and why it is not done: parked events and held-back
// nodes. It is "" if there is none.
func (s *Space) Pending() string { return s.s.Pending() }

func (s *Space) nodeNames() string {
	var names []string
	for _, n := range s.s.Inspect().Nodes() {
		if model.CheckName("node", n.ID) == nil { // no observers
			names = append(names, n.ID)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(text, "\n", "\n    ")
}
