package simkit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/space/inspect"
)

// Send stores an event in the lane of the space, runs everything that follows from it at this time,
// and returns the receipt; false if there is none yet (see Pending). Sending an id to the same
// stream again has no effect and returns the first receipt; with another payload the error is a *model.ReusedIDError. An empty id stands for a new one.
func (s *Space) Send(stream, id string, payload model.Value, notBefore time.Time) (rc model.Receipt, ok bool, err error) {
	return s.SendAs("", stream, id, payload, notBefore)
}

// Report is Send of the end of a task, as a worker reports it.
func (s *Space) Report(action string, payload model.Value) (rc model.Receipt, ok bool, err error) {
	s.w.nextID++
	k := key{action, "done:" + strconv.Itoa(s.w.nextID)}
	err = s.w.do(func() error {
		s.enqueue(model.Event{Space: s.name, Stream: action, ID: k.id, Payload: payload})
		return s.w.run()
	})
	rc, ok = s.receipts[k]
	return rc, ok, err
}

// SendAs is Send in the name of a principal, "" for none.
func (s *Space) SendAs(principal, stream, id string, payload model.Value, notBefore time.Time) (rc model.Receipt, ok bool, err error) {
	k, err := s.keyOf(principal, stream, id)
	if err != nil {
		return model.Receipt{Event: k.id}, false, err
	}
	err = s.w.do(func() error {
		delete(s.unawaited, k)
		return cmp.Or(s.put(k, payload, notBefore), s.w.run())
	})
	rc, ok = s.receipts[k]
	if !ok {
		rc.Event = k.id
	}
	return rc, ok, err
}

// Queue stores an event in the lane of the space, as SendAs does, and runs nothing: it is handled by the next call that runs what can be done. It
// is a problem if the event fails, unless it is sent again before.
func (s *Space) Queue(principal, stream, id string, payload model.Value) error {
	k, err := s.keyOf(principal, stream, id)
	if err != nil {
		return err
	}
	return s.w.do(func() error {
		if _, sent := s.sent[k]; !sent {
			s.unawaited[k] = true
		}
		s.w.queued = true
		return s.put(k, payload, time.Time{})
	})
}

// keyOf returns the key of an event that a client sends; an empty id stands for a new one.
func (s *Space) keyOf(principal, stream, id string) (key, error) {
	if id == "" {
		s.w.nextID++
		id = "sent-" + strconv.Itoa(s.w.nextID)
	}
	err := checkSend(stream, id)
	if err == nil && principal != "" && principal != model.Operator {
		err = model.CheckPrincipal(principal)
	}
	if err != nil {
		return key{stream, id}, err
	}
	return key{stream, model.EventIDOf(principal, id)}, nil
}

// put puts an event of a client into the lane, unless it has been sent before.
func (s *Space) put(k key, payload model.Value, notBefore time.Time) error {
	switch was, sent := s.sent[k]; {
	case sent && !model.Equal(orNull(was), orNull(payload)):
		return &model.ReusedIDError{Space: s.name, Stream: k.stream, ID: k.id}
	case !sent:
		s.sent[k] = payload
		ev := model.Event{Space: s.name, Stream: k.stream, ID: k.id, Payload: payload}
		if !notBefore.IsZero() {
			ev.NotBefore = model.NotBefore(notBefore)
		}
		s.enqueue(ev)
	}
	return nil
}

func orNull(v model.Value) model.Value {
	if v.IsAbsent() {
		return model.Null()
	}
	return v
}

// Deliver puts an event into the lane of the space as if another process had stored it there, and
// runs everything that follows from it at this time. An earlier event of that stream and id is
// kept.
func (s *Space) Deliver(ev model.Event) error {
	k := key{ev.Stream, ev.ID}
	return s.w.do(func() error {
		if _, sent := s.sent[k]; !sent {
			s.sent[k] = ev.Payload
			ev.Space = s.name
			s.enqueue(ev)
		}
		return s.w.run()
	})
}

func checkSend(stream, id string) error {
	if err := model.CheckSendStream(stream); err != nil {
		return err
	}
	return model.CheckEventID(id)
}

// Receipt returns the receipt of an event; false if it has not ended.
func (s *Space) Receipt(stream, id string) (model.Receipt, bool) {
	rc, ok := s.receipts[key{stream, id}]
	return rc, ok
}

// Panic returns where the handler of an event panicked, "" if it did not.
func (s *Space) Panic(stream, id string) string {
	stack := s.panics[key{stream, id}]
	if len(stack) == 0 {
		return ""
	}
	return userFrames(string(stack))
}

// Value returns a document in its present state, up to date or not.
func (s *Space) Value(doc string) model.Value { return s.core.Value(doc) }

// Tasks returns the tasks of an action, sorted by key.
func (s *Space) Tasks(action string) []space.Task { return s.core.Tasks(action) }

// reading is the name of the node that Read registers.
const reading = "settletest-read"

// Read runs f in the space as an effect would be run: its reads are demand, so that derived
// documents are brought up to date, documents of other spaces are mirrored, and links are followed.
// f is called again for each of those. stale is why a document that it read is out of date at the
// end: a computation fails, or a debounce holds it back.
func (s *Space) Read(f func(tx *space.Tx) error) (stale string, err error) {
	err = s.w.do(func() error {
		var failed error
		err := s.core.Register(space.NodeSpec{ID: reading, Kind: space.Effect, Run: func(tx *space.Tx) (model.Value, error) {
			failed = f(tx)
			if failed == nil {
				failed = tx.Err()
			}
			return model.Value{}, nil
		}})
		if err != nil {
			return err
		}
		s.w.touch(s)
		err = s.w.run()
		stale = s.behind(reading)
		s.core.Remove(reading)
		s.w.touch(s)
		return cmp.Or(err, s.w.run(), failed)
	})
	return stale, err
}

// Stale returns why a document is out of date although it is observed; "" if it is up to date.
func (s *Space) Stale(doc string) (string, error) {
	return s.Read(func(tx *space.Tx) error { tx.Get(doc); return nil })
}

// behind returns what a node waits for, or which of its reads is out of date; "" if there is
// nothing.
func (s *Space) behind(node string) string {
	e, ok := s.Explain(node)
	switch {
	case !ok:
		return ""
	case e.Behind != nil:
		return e.Behind.String()
	case e.RunState != inspect.UpToDate:
		return e.String()
	}
	return s.failing(node)
}

// failing returns which of the nodes behind a node failed in its last run.
func (s *Space) failing(node string) string {
	v := s.core.Inspect()
	seen, list := map[string]bool{node: true}, []string{node}
	for i := 0; i < len(list); i++ {
		n, _ := v.Node(list[i])
		if n.Stats.LastErr != nil {
			return fmt.Sprintf("the last run of %s failed: %v", n.ID, n.Stats.LastErr)
		}
		up, _ := inspect.Split(v.Writers(list[i]))
		for _, e := range up {
			if !seen[e.Node] {
				seen[e.Node] = true
				list = append(list, e.Node)
			}
		}
	}
	return ""
}

// byTest is the author of the transactions of tests.
const byTest = "settletest"

// Write runs a transaction without an event, as the application that hosts a space may: it prepares
// a test.
func (s *Space) Write(f func(tx *space.Tx) error) error {
	return s.w.do(func() error {
		_, err := s.core.Transact(byTest, f)
		s.w.touch(s)
		return cmp.Or(err, s.w.run())
	})
}

// SendTo has the space send an event to a space, this one or another, in a transaction without an event, runs everything that follows from it
// at this time, and returns the receipt; false if there is none yet.
func (s *Space) SendTo(to, stream string, payload model.Value) (rc model.Receipt, ok bool, err error) {
	s.sentDirectly = ""
	err = s.Write(func(tx *space.Tx) error {
		tx.Send(to, stream, payload)
		return nil
	})
	rc.Event = s.sentDirectly
	if target := s.w.spaces[to]; err == nil && target != nil {
		if ended, is := target.Receipt(stream, s.sentDirectly); is {
			return ended, true, nil
		}
	}
	return rc, false, err
}

// Watch is an observation of a document.
type Watch struct {
	s      *Space
	doc    string
	values []model.Value
	ended  bool
}

// Watch observes a document from now on. The first value seen is the one that it has once it is up
// to date.
func (s *Space) Watch(doc string) (*Watch, error) {
	x := &Watch{s: s, doc: doc}
	return x, s.w.do(func() error {
		if err := s.core.Observe(doc); err != nil {
			return err
		}
		s.w.touch(s)
		if err := s.w.run(); err != nil {
			return err
		}
		x.values = append(x.values, s.core.Value(doc))
		s.watches = append(s.watches, x)
		return nil
	})
}

// updateWatches delivers new values to the watches at the end of a step.
func (s *Space) updateWatches() {
	for _, x := range s.watches {
		if v := s.core.Value(x.doc); !x.ended && !model.Equal(v, x.values[len(x.values)-1]) {
			x.values = append(x.values, v)
		}
	}
}

// Values returns the values seen, oldest first.
func (x *Watch) Values() []model.Value { return x.values }

// Stop ends the observation.
func (x *Watch) Stop() error {
	if x.ended {
		return nil
	}
	x.ended = true
	return x.s.w.do(func() error {
		x.s.core.Unobserve(x.doc)
		x.s.w.touch(x.s)
		return x.s.w.run()
	})
}

// Mark resets the counts of runs.
func (s *Space) Mark() {
	for _, c := range s.runs { // any order: each on its own
		c.since = 0
	}
	s.ran = nil
}

// Runs returns how often a node has run since the last Mark.
func (s *Space) Runs(node string) int {
	if c := s.runs[node]; c != nil {
		return c.since
	}
	return 0
}

// Ran returns the nodes that have run since the last Mark, in order, once per run.
func (s *Space) Ran() []string { return s.ran }

// Has reports whether the space has a node of that name.
func (s *Space) Has(node string) bool {
	_, ok := s.core.Inspect().Node(node)
	return ok
}

// Knows reports whether a loaded space has, or had, a node of that name, could have it as the node
// of a row, or handles a stream of that name. In a world that was given up, which cannot be
// inspected, it returns true.
func (w *World) Knows(name string) (known bool) {
	parent, _, _ := strings.Cut(name, model.RowMark)
	err := w.do(func() error {
		known = slices.ContainsFunc(w.order, func(s *Space) bool {
			return s.runs[name] != nil || s.Has(name) || s.Has(parent) || s.program.Handles(name)
		})
		return nil
	})
	return known || err != nil
}

// Inspect returns how the space stands.
func (s *Space) Inspect() *inspect.Snapshot { return s.core.Inspect() }

// Explain explains a node: why it ran last, and why it does not run now.
func (s *Space) Explain(node string) (inspect.Explanation, bool) {
	return s.core.Inspect().Explain(node)
}

// Pending describes the work left in the space and why it is not done, "" if there is none.
func (s *Space) Pending() string {
	var lines []string
	now := s.core.Inspect()
	if p, ok := now.Parked(); ok {
		lines = append(lines, p.String())
	}
	if n := s.core.Waiting(); n > 1 {
		lines = append(lines, fmt.Sprintf("%d events wait in the lane, that one included", n))
	}
	for _, n := range now.Nodes() {
		if n.Live && n.Status != inspect.Clean {
			e, _ := now.Explain(n.ID)
			lines = append(lines, e.String())
		}
	}
	return strings.Join(lines, "\n")
}

// NextDue returns when the next waiting event is due; false if none waits.
func (s *Space) NextDue() (time.Time, bool) {
	ms := s.core.NextDue()
	return time.UnixMilli(ms).UTC(), ms != 0
}

// Parked returns why the event at the head of the lane has not been handled; false if there is
// none.
func (s *Space) Parked() (inspect.Parked, bool) {
	return s.core.Inspect().Parked()
}

// Handled returns how many events have ended in the space.
func (s *Space) Handled() int { return s.handled }

// Docs returns the names of the documents in the space's log, sorted.
func (s *Space) Docs() []string {
	var out []string
	for _, id := range slices.Sorted(maps.Keys(s.docs)) {
		if v, _ := s.core.Confirmed(id); !v.IsAbsent() {
			out = append(out, id)
		}
	}
	return out
}

// Log returns the commits of the space, the first one first.
func (s *Space) Log() []model.LogEntry { return slices.Clone(s.log) }
