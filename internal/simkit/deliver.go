package simkit

import (
	"errors"
	"slices"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
	"github.com/settlehq/settle/space"
)

// deliver puts an event into the lane of its space, which is loaded for it. An event for a space
// without a program stays in the lane, as in a deployment.
func (w *World) deliver(ev model.Event) {
	s, err := w.runnable(ev.Space)
	if err != nil {
		w.problem(Problem{Space: ev.Space, Kind: Startup, Stream: ev.Stream, Event: ev.ID, Err: err})
	}
	if s == nil {
		w.undelivered = append(w.undelivered, ev)
		if err == nil {
			w.problem(Problem{Space: ev.Space, Kind: Undelivered, Stream: ev.Stream, Event: ev.ID, Text: "the space has no program, so the event waits in its lane"})
		}
		return
	}
	s.enqueue(ev)
}

// runnable returns the space of that name, and loads it if necessary; nil if it has no program.
func (w *World) runnable(name string) (*Space, error) {
	s, err := w.load(name)
	if errors.Is(err, ErrNoProgram) {
		return nil, nil
	}
	return s, err
}

// enqueue gives an event the next place in the lane.
func (s *Space) enqueue(ev model.Event) {
	s.w.lane++
	ev.Lane = s.w.lane
	s.lane = append(s.lane, ev)
	s.core.Offer(ev) // without room, the core asks for it later
	s.w.touch(s)
}

// end records the receipt of an event, and returns the notice for its origin, if one is due.
func (s *Space) end(tx *model.Tx) []model.Event {
	rc := *tx.Receipt
	stream, _ := receipts.Stream(tx.By)
	k := key{stream, rc.Event}
	s.receipts[k] = rc
	s.handled++
	s.w.handled++
	if rc.Outcome != model.Handled && rc.Outcome != model.Rejected {
		s.w.letters = append(s.w.letters, Letter{Space: s.name, Stream: stream, Receipt: rc})
		if _, sent := s.sent[k]; (!sent || s.unawaited[k]) && !s.w.byTest[rc.Event] {
			s.w.problem(Problem{Space: s.name, Kind: DeadLetter, Stream: stream, Event: rc.Event, Text: string(rc.Outcome) + ": " + rc.Error, Err: s.failures[k], Stack: s.panics[k]})
		}
	}
	delete(s.failures, k)
	origin := history.NoticeTo(&rc)
	if origin == "" {
		return nil
	}
	m := history.NoticeOf(s.name, tx).Message(origin, tx.Trace)
	payload, err := model.ParseValue(m.Payload)
	if err != nil {
		panic(err) // it was encoded above
	}
	return []model.Event{{Space: m.Space, Stream: m.Stream, ID: m.ID, Payload: payload, Depth: m.Depth}}
}

// mirrored is a document that other spaces read.
type mirrored struct {
	readers []*Space // those to which its value was passed
	seq     uint64   // of the commit that the readers have seen
}

// follow begins to mirror a document for a space: it is observed in its own space. The documents of
// a space without a program are absent.
func (w *World) follow(reader *Space, ref space.Ref) error {
	if model.IsPattern(ref.Space) {
		w.listings[ref.Space] = append(w.listings[ref.Space], reader)
		w.touch(reader)
		reader.core.Mirror(ref.Space, ref.Doc, w.listOf(ref.Space))
		return nil
	}
	home, err := w.runnable(ref.Space)
	if err != nil {
		return err
	}
	w.touch(reader)
	if home == nil {
		reader.core.Mirror(ref.Space, ref.Doc, model.Value{})
		return nil
	}
	if err := home.core.Observe(ref.Doc); err != nil {
		return err
	}
	w.touch(home)
	m := home.mirrors[ref.Doc]
	if m == nil {
		m = &mirrored{}
		home.mirrors[ref.Doc] = m
	}
	v, seq := home.core.Confirmed(ref.Doc)
	m.seq = seq
	if v.IsAbsent() {
		home.absences = append(home.absences, absence{reader, ref.Doc, w.now.Add(holding)})
		w.absences++
		return nil
	}
	m.readers = append(m.readers, reader)
	reader.core.Mirror(ref.Space, ref.Doc, v)
	return nil
}

func (w *World) unfollow(reader *Space, ref space.Ref) {
	if model.IsPattern(ref.Space) {
		w.listings[ref.Space] = slices.DeleteFunc(w.listings[ref.Space], func(s *Space) bool { return s == reader })
		return
	}
	home := w.spaces[ref.Space]
	if home == nil {
		return
	}
	m := home.mirrors[ref.Doc]
	m.readers = slices.DeleteFunc(m.readers, func(s *Space) bool { return s == reader })
	home.dropAbsences(func(a absence) bool { return a.reader == reader && a.doc == ref.Doc })
	home.core.Unobserve(ref.Doc)
	w.touch(home)
	if len(m.readers) == 0 && !home.holds(ref.Doc) {
		delete(home.mirrors, ref.Doc)
	}
}

// deliverDocument passes the document's value after a commit to its readers.
func (s *Space) deliverDocument(doc string, via *model.Trail) {
	m := s.mirrors[doc]
	if m == nil {
		return
	}
	v, seq := s.core.Confirmed(doc)
	if seq == m.seq {
		return
	}
	m.seq = seq
	if !v.IsAbsent() {
		for _, a := range s.dropAbsences(func(a absence) bool { return a.doc == doc }) {
			m.readers = append(m.readers, a.reader)
		}
	}
	for _, reader := range m.readers {
		reader.core.MirrorVia(s.name, doc, v, via)
		s.w.touch(reader)
	}
}
