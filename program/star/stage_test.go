package star

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
	"github.com/settlehq/settle/space"
)

// stage is one space that runs a program, with a log that accepts everything: enough to test the
// language. The behaviour of a fleet is tested elsewhere.
type stage struct {
	t    testing.TB
	core *space.Space

	name     string
	now      time.Duration
	wall     time.Time
	seq      uint64
	lane     uint64
	runs     map[string]int
	receipts map[string]*model.Receipt
	sends    []model.Send
	errs     []error
	logged   []string
	mirrors  map[space.Ref]model.Value
	log      []*model.Commit
	notes    []space.Violation
}

func compiled(t testing.TB, text string, files ...string) *Program {
	t.Helper()
	p, err := Compile(source(text, files...), Options{})
	if err != nil {
		t.Fatalf("compile: %v", err)
	}
	return p
}

func source(text string, files ...string) Source {
	s := Source{Name: "test", Entry: "test.star", Files: map[string]string{"test.star": text}}
	for i := 0; i+1 < len(files); i += 2 {
		s.Files[files[i]] = files[i+1]
	}
	return s
}

func newStage(t testing.TB, p *space.Program, change ...func(*space.Config)) *stage {
	t.Helper()
	s := &stage{t: t, name: "ATL", wall: time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC), runs: map[string]int{}, receipts: map[string]*model.Receipt{}, mirrors: map[space.Ref]model.Value{}}
	cfg := space.Config{Space: s.name, Runtime: "r1", CheckIdempotency: true}
	cfg.Trace.RunStart = func(i space.RunInfo) { s.runs[i.Node]++ }
	cfg.Trace.Violated = func(v space.Violation) { s.notes = append(s.notes, v) }
	for _, f := range change {
		f(&cfg)
	}
	r, err := replica.Load(s.name, model.SpaceState{})
	if err == nil {
		s.core, err = space.New(cfg, p, r)
	}
	if err != nil {
		t.Fatalf("new space: %v", err)
	}
	s.core.OnError(func(i space.ErrorInfo) { s.errs = append(s.errs, i.Err) })
	s.core.OnConsole(func(i space.ConsoleInfo) {
		s.logged = append(s.logged, strings.TrimSpace(i.Message+" "+strings.Trim(fmt.Sprint(i.Args...), "[]")))
	})
	s.core.TakeOver()
	s.settle()
	return s
}

// settle lets the space work until it is at rest.
func (s *stage) settle() {
	s.t.Helper()
	for range 1000 {
		s.core.Clock(s.wall)
		r := s.core.Settle(s.now)
		for _, ref := range r.Follow {
			s.core.Mirror(ref.Space, ref.Doc, s.mirrors[ref])
		}
		if r.Append != nil {
			s.seq++
			c, err := model.DecodeCommit(slices.Clone(r.Append.Data))
			if err != nil {
				s.t.Fatalf("decode: %v", err)
			}
			s.take(c)
			if err := s.core.Confirm(s.seq); err != nil {
				s.t.Fatalf("confirm: %v", err)
			}
			continue
		}
		if !r.More && len(r.Follow) == 0 {
			return
		}
	}
	s.t.Fatalf("the space does not come to rest")
}

func (s *stage) take(c *model.Commit) {
	s.log = append(s.log, c)
	for i := range c.Txs {
		if rc := c.Txs[i].Receipt; rc != nil {
			s.receipts[rc.Event] = rc
		}
		s.sends = append(s.sends, c.Txs[i].Sends...)
	}
}

// send sends an event, and returns its receipt.
func (s *stage) send(stream string, payload any) *model.Receipt {
	s.t.Helper()
	return s.sendAs("", stream, payload)
}

// sendAs is send in the name of a principal, if it is not "".
func (s *stage) sendAs(principal, stream string, payload any) *model.Receipt {
	s.t.Helper()
	s.lane++
	id := model.EventIDOf(principal, fmt.Sprintf("e%d", s.lane))
	s.core.Offer(model.Event{Space: s.name, Stream: stream, ID: id, Payload: model.MustOf(payload), Lane: s.lane})
	s.settle()
	if s.receipts[id] == nil {
		s.t.Fatalf("event %s of %s has no receipt; errors: %v", id, stream, s.errs)
	}
	return s.receipts[id]
}

// must is send for an event that must be handled; it returns the result.
func (s *stage) must(stream string, payload any) model.Value {
	s.t.Helper()
	rc := s.send(stream, payload)
	if rc.Outcome != model.Handled {
		s.t.Fatalf("event of %s: %s, %s", stream, rc.Outcome, rc.Error)
	}
	return rc.Result
}

func (s *stage) advance(d time.Duration) {
	s.t.Helper()
	s.now, s.wall = s.now+d, s.wall.Add(d)
	s.settle()
}

func (s *stage) observe(docs ...string) {
	s.t.Helper()
	for _, d := range docs {
		if err := s.core.Observe(d); err != nil {
			s.t.Fatal(err)
		}
	}
	s.settle()
}

// doc returns a document's value as text.
func (s *stage) doc(id string) string { return s.value(id).String() }

func (s *stage) value(id string) (v model.Value) {
	s.t.Helper()
	_, err := s.core.Transact("test", func(tx *space.Tx) error {
		v = tx.Peek(id)
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.settle() // it is a transaction like any other
	return v
}

func (s *stage) expect(id, want string) {
	s.t.Helper()
	if got := s.doc(id); got != want {
		s.t.Errorf("document %s is %s; want %s; errors: %v", id, got, want, s.errs)
	}
}
