package settletest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// patience is how long a test waits for an answer of the fleet, in virtual time.
const patience = 2 * time.Minute

// FleetSpace is one space of a fleet. Like a Space it is a settle.Reader.
type FleetSpace struct {
	f    *Fleet
	name string
	// by is the principal in whose name events are sent to it.
	by string
}

var _ settle.Reader = (*FleetSpace)(nil)

// Space returns the space with a name.
func (f *Fleet) Space(name string) *FleetSpace { return &FleetSpace{f: f, name: name} }

// As returns the space for events that a principal sends to it; see Space.As.
func (s *FleetSpace) As(principal string) *FleetSpace { return &FleetSpace{s.f, s.name, principal} }

// Space returns the name of the space.
func (s *FleetSpace) Space() string { return s.name }

// Post sends an event under an id, and returns when it is stored. It does not wait for the handler, so that
// the test can go on to send more events or kill workers.
func (s *FleetSpace) Post(stream string, id settle.EventID, payload any) {
	s.f.t.Helper()
	v, err := settle.ValueOf(payload)
	if err != nil {
		s.f.t.Fatalf("settletest: send to %s/%s: %v", s.name, stream, err)
	}
	s.post(stream, id.String(), v, time.Time{})
}

func (s *FleetSpace) post(stream, id string, v settle.Value, at time.Time) {
	s.f.t.Helper()
	id = model.EventIDOf(s.by, id)
	m := model.Message{Space: s.name, Stream: stream, ID: id}
	if !v.IsAbsent() {
		m.Payload = v.AppendJSON(nil)
	}
	if !at.IsZero() {
		m.NotBefore = model.NotBefore(at)
	}
	if err := s.f.store(m); err != nil {
		s.f.t.Fatalf("settletest: send to %s/%s: %v", s.name, stream, err)
	}
	s.f.posted = append(s.f.posted, posted{s.name, receipts.Key{Stream: stream, ID: id}, m.NotBefore})
}

// store stores an event. One with its id has to have the same payload, as for Call of a client.
func (f *Fleet) store(m model.Message) error {
	var r model.SendResult
	done := make(chan error, 1)
	f.client.Send(m, func(result model.SendResult, err error) { r = result; done <- err })
	if err := <-done; err != nil || !r.Duplicate {
		return err
	}
	return history.CheckReuse(context.Background(), f.client, &m)
}

// Post sends an event to a space of a fleet, and returns when it is stored. The payload is as in Call.
func Post[In, Out any](s *FleetSpace, of Events[In, Out], id settle.EventID, in ...In) {
	s.f.t.Helper()
	s.post(of.Name(), id.String(), payload(s, of, in), time.Time{})
}

// Receipt returns the receipt of an event; false if it has not ended.
func (s *FleetSpace) Receipt(stream string, id settle.EventID) (model.Receipt, bool) {
	return s.receipt(stream, model.EventIDOf(s.by, id.String()))
}

func (s *FleetSpace) receipt(stream, id string) (model.Receipt, bool) {
	o := &outcome{receipts: map[string]map[receipts.Key][]*model.Receipt{}}
	s.f.read(o, s.name)
	if list := o.receipts[s.name][receipts.Key{Stream: stream, ID: id}]; len(list) > 0 {
		return *list[0], true
	}
	return model.Receipt{Event: id}, false
}

// sendTo implements Send and Call: it waits for the receipt.
func (s *FleetSpace) sendTo(stream, id string, v settle.Value, at time.Time) (model.Receipt, bool) {
	s.f.t.Helper()
	if id == "" {
		id = fmt.Sprintf("sent-%d", len(s.f.posted)+1)
	}
	s.post(stream, id, v, at)
	id = model.EventIDOf(s.by, id)
	if !at.IsZero() {
		return s.receipt(stream, id)
	}
	for began := time.Now(); time.Since(began) < patience; pass(10 * time.Millisecond) {
		if rc, ok := s.receipt(stream, id); ok {
			return rc, true
		}
	}
	return model.Receipt{Event: id}, false
}

// Get reads a document, or the value at a path in it, at the head of the log, brought up to date by
// the worker that owns the space.
func (s *FleetSpace) Get(doc string, path ...string) settle.Value {
	s.f.t.Helper()
	return s.f.query(s.name, doc).At(path)
}

// GetFrom reads a document of another space.
func (s *FleetSpace) GetFrom(space, doc string, path ...string) settle.Value {
	s.f.t.Helper()
	return s.f.query(space, doc).At(path)
}

// GetShallow is Get.
func (s *FleetSpace) GetShallow(doc string, path ...string) settle.Value {
	s.f.t.Helper()
	return s.Get(doc, path...)
}

// Peek is Get.
func (s *FleetSpace) Peek(doc string, path ...string) settle.Value {
	s.f.t.Helper()
	return s.Get(doc, path...)
}

// Link reads the link at a path.
func (s *FleetSpace) Link(doc string, path ...string) (model.Link, bool) {
	s.f.t.Helper()
	return s.Get(doc, path...).AsLink()
}

// Follow reads what a link points to.
func (s *FleetSpace) Follow(l model.Link) settle.Value {
	s.f.t.Helper()
	if l.Space == "" {
		l.Space = s.name
	}
	return s.GetFrom(l.Space, l.Doc, l.Path...)
}

// Err returns nil: an error ends the test.
func (s *FleetSpace) Err() error { return nil }

// Fail ends the test.
func (s *FleetSpace) Fail(err error) {
	s.f.t.Helper()
	s.f.t.Fatalf("settletest: space %s: %v", s.name, err)
}

func (s *FleetSpace) tb() TB { return s.f.t }

func (s *FleetSpace) doubt(string) string { return "" }

func (s *FleetSpace) panicked(string, string) string { return "" }

func (s *FleetSpace) underived(string) string { return "" }

// query queries a document until the worker that owns the space answers.
func (f *Fleet) query(space, doc string) settle.Value {
	f.t.Helper()
	for began := time.Now(); time.Since(began) < patience; pass(50 * time.Millisecond) {
		for _, m := range f.workers {
			states, err := m.Read(f.t.Context(), model.ReadRequest{
				Documents: []model.DocumentRef{{Space: space, Document: doc}}, Current: true, Wait: time.Second,
			})
			switch {
			case errors.Is(err, model.ErrElsewhere):
				continue
			case err != nil:
				f.t.Fatalf("settletest: read %s of space %s: %v", doc, space, err)
			case states[0].Stale == "":
				return states[0].Value
			}
		}
	}
	f.t.Fatalf("settletest: read %s of space %s: no worker has answered with a current value", doc, space)
	return settle.Value{}
}
