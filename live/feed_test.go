package live

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
)

// A watcher that has a revision receives a deletion that the log no longer has. The deletion gets the
// revision up to which the feed has read.
func TestFeed_ReportsADeletionThatTheLogHasForgotten(t *testing.T) {
	f := &feed{subs: map[*sub]bool{}}
	back := &sub{feed: f, news: make(chan struct{}, 1), last: 5, begun: true}
	fresh := &sub{feed: f, news: make(chan struct{}, 1)}
	f.subs[back], f.subs[fresh] = true, true
	f.take(history.Change{Read: 9})
	if e := back.take()[0]; e.Kind != Deleted || e.Revision != 9 {
		t.Errorf("the watcher with revision 5 received %+v", e)
	}
	if e := fresh.take()[0]; e.Kind != Deleted || e.Revision != 0 {
		t.Errorf("the watcher without a revision received %+v", e)
	}
	f.take(history.Change{Value: model.Int(1), Revision: 12, Read: 12})
	f.take(history.Change{Revision: 20, Read: 20})
	for _, s := range []*sub{back, fresh} {
		if e := s.take()[0]; e.Kind != Deleted || e.Revision != 20 {
			t.Errorf("a watcher received %+v", e)
		}
	}
}

// A watcher that joins a feed sees the document as it is at that time or later, never an older state.
func TestFeed_AWatchThatJoinsSeesNothingOlderThanItsCall(t *testing.T) {
	for _, c := range []struct {
		there uint64 // the document's revision when the watcher joined
		takes []history.Change
		shown string
	}{
		{3, nil, "3"},
		{5, nil, ""},
		{5, []history.Change{{Value: model.Int(4), Revision: 4, Read: 4}}, ""},
		{5, []history.Change{{Value: model.Int(5), Revision: 5, Read: 5}}, "5"},
		{5, []history.Change{{Value: model.Int(6), Revision: 6, Read: 6}}, "6"},
		{5, []history.Change{{Value: model.Int(2), Revision: 2, Read: 2, Rewound: true}}, "2"},
		{4, []history.Change{{Revision: 9, Read: 9}}, "-"},
		{4, []history.Change{{Revision: 4, Read: 4}}, "-"},
	} {
		f := &feed{subs: map[*sub]bool{}, status: Event{Kind: Current}}
		f.take(history.Change{Value: model.Int(3), Revision: 3, Read: 3})
		s := &sub{feed: f, news: make(chan struct{}, 1), waits: true}
		f.subs[s] = true
		s.offer(f.newest)
		s.offerStatus(f.status)
		if news := s.take(); len(news) > 0 {
			t.Errorf("a waiting watcher received %+v", news)
		}
		waiting, _ := f.waiting()
		f.confirmed(waiting, c.there)
		for _, change := range c.takes {
			f.take(change)
		}
		shown, current := "", false
		for _, e := range s.take() {
			switch e.Kind {
			case Value:
				shown = string(e.Data)
			case Deleted:
				shown = "-"
			case Current:
				current = true
			}
		}
		if shown != c.shown || current != (c.shown != "") {
			t.Errorf("joined at revision %d, then changes %+v: delivered %q, current %v; want %q", c.there, c.takes, shown, current, c.shown)
		}
	}
}

// The document was deleted while the feed was behind, and the log no longer has the deletion.
func TestFeed_AWatchThatJoinsDoesNotSeeAForgottenDeletion(t *testing.T) {
	b := membus.NewServer(membus.Config{Partitions: 1}).Connect("a")
	defer b.Close()
	f := &feed{space: "s", doc: "n", ctx: t.Context(), subs: map[*sub]bool{}}
	f.take(history.Change{Value: model.Int(3), Revision: 3, Read: 3})
	s := &sub{feed: f, news: make(chan struct{}, 1), waits: true}
	f.subs[s] = true
	(&Server{bus: b}).confirm(f)
	if news := s.take(); len(news) > 0 {
		t.Errorf("received %+v", news)
	}
	f.take(history.Change{Revision: 9, Read: 9})
	if news := s.take(); len(news) != 1 || news[0].Kind != Deleted {
		t.Errorf("then received %+v", news)
	}
}

// A document is not current before its value has been read. If that takes long, the log reader is stuck and
// watchers are notified.
func TestFeed_IsCurrentWhenItHasTheValueThatTheOwnerHas(t *testing.T) {
	f := &feed{subs: map[*sub]bool{}}
	began := time.Now()
	said := func(want Kind, g documentStatus, after time.Duration) {
		t.Helper()
		if f.applyStatus(g, began.Add(after)); f.status.Kind != want {
			t.Errorf("after %s the status is %+v, want %q", after, f.status, want)
		}
	}
	said("", documentStatus{}, 0) // nothing was read yet
	f.take(history.Change{Read: 3})
	said(Current, documentStatus{}, time.Second)
	said(Current, documentStatus{Revision: 7}, 2*time.Second)
	said(Current, documentStatus{Revision: 9}, 6*time.Second)
	said(Stale, documentStatus{Revision: 9}, 11*time.Second)
	f.take(history.Change{Value: model.Int(1), Revision: 9, Read: 9})
	said(Current, documentStatus{Revision: 9}, 12*time.Second)
}

// The owner may know the revision of a deletion that the log no longer has. A feed that has read past that
// revision is current.
func TestFeed_IsCurrentWhenADeletionWasForgottenThatTheOwnerRemembers(t *testing.T) {
	f := &feed{subs: map[*sub]bool{}}
	f.take(history.Change{Revision: 20, Read: 20})
	began := time.Now()
	for _, after := range []time.Duration{0, gracePeriod + time.Second} {
		if f.applyStatus(documentStatus{Revision: 9}, began.Add(after)); f.status.Kind != Current {
			t.Errorf("after %s the status is %+v", after, f.status)
		}
	}
}

func TestTruncateReason_LeavesWholeCharacters(t *testing.T) {
	if s := truncateReason(strings.Repeat("a", maxReason-1) + "é"); !utf8.ValidString(s) || len(s) > maxReason+4 {
		t.Errorf("truncated to %d bytes ending in %q", len(s), s[len(s)-6:])
	}
}

// After the store has gone back, watchers receive Rewound first, and then the present value, although its
// revision is lower. That holds for connected watchers and for those that resume from a lost revision.
func TestFeed_GoesBackWithTheStore(t *testing.T) {
	f := &feed{subs: map[*sub]bool{}}
	here := &sub{feed: f, news: make(chan struct{}, 1)}
	f.subs[here] = true
	f.take(history.Change{Value: model.Int(9), Revision: 9, Read: 9})
	here.take()
	wantBack := func(who string, s *sub) {
		t.Helper()
		if news := s.take(); len(news) != 2 || news[0].Kind != Rewound || news[1].Kind != Value || news[1].Revision != 3 {
			t.Errorf("%s received %+v, want Rewound and the value of revision 3", who, news)
		}
	}
	f.back = true
	f.take(history.Change{Value: model.Int(3), Revision: 3, Read: 3, Rewound: true})
	wantBack("the connected watcher", here)
	again := &sub{feed: f, news: make(chan struct{}, 1), last: 9, begun: true}
	again.detectRewind(f)
	again.offer(f.newest)
	wantBack("the resumed watcher", again)
	knows := &sub{feed: f, news: make(chan struct{}, 1), last: 3, begun: true}
	knows.detectRewind(f)
	knows.offer(f.newest)
	if news := knows.take(); len(news) != 0 {
		t.Errorf("the up-to-date watcher received %+v", news)
	}
}

// A process that started after the store went back can infer that only from a watcher's revision: the log has
// been read past it, and the document does not have it.
func TestFeed_ResetsAWatcherWithARevisionThatTheDocumentNeverHad(t *testing.T) {
	for _, c := range []struct {
		knows uint64
		back  bool
	}{{2, false}, {3, false}, {4, true}, {7, true}, {8, false}, {math.MaxUint64, false}} {
		f := &feed{subs: map[*sub]bool{}}
		f.take(history.Change{Value: model.Int(3), Revision: 3, Read: 7})
		s := &sub{feed: f, news: make(chan struct{}, 1), last: c.knows, begun: true}
		s.detectRewind(f)
		s.offer(f.newest)
		news := s.take()
		if back := len(news) == 2 && news[0].Kind == Rewound && news[1].Revision == 3; back != c.back {
			t.Errorf("the watcher with revision %d received %+v", c.knows, news)
		}
	}
	f := &feed{subs: map[*sub]bool{}} // a deletion that the log has forgotten gets the revision up to which the log was read
	f.take(history.Change{Read: 7})
	s := &sub{feed: f, news: make(chan struct{}, 1), last: 5, begun: true}
	s.detectRewind(f)
	s.offer(f.newest)
	if news := s.take(); len(news) != 1 || news[0].Kind != Deleted || news[0].Revision != 7 {
		t.Errorf("for a forgotten deletion the watcher received %+v", news)
	}
}

// A client whose watch breaks after a rewind does not resume from the lost revision.
func TestClient_ForgetsItsRevisionWithTheStore(t *testing.T) {
	var told []Kind
	w := watching{q: Watch{From: At(9)}, begun: true, deliver: func(e Event) { told = append(told, e.Kind) }}
	for _, e := range []Event{{Kind: Rewound}, {Kind: Value, Revision: 3}} {
		if err := w.take(e); err != nil {
			t.Fatal(err)
		}
		if w.q.From.Revision != e.Revision {
			t.Errorf("after %+v the client would resume from %s", e, w.q.From)
		}
	}
	if len(told) != 2 {
		t.Errorf("received %v", told)
	}
}

// narrow is an outlet that refuses every message as too large.
type narrow struct{ model.Outlet }

func (narrow) Send(model.Part) error { return fmt.Errorf("say: %w", model.ErrTooLarge) }

// A value that cannot be sent ends the watch; otherwise the watcher would take its old value for the newest.
func TestSend_AValueThatIsTooLargeIsAnError(t *testing.T) {
	if err := send(narrow{}, Event{Kind: Value, Revision: 1, Data: []byte("1")}); !errors.Is(err, model.ErrTooLarge) {
		t.Errorf("the error is %v", err)
	}
}

// A problem that was solved and returns gets a new grace period.
func TestFeed_AProblemThatReturnsHasANewGracePeriod(t *testing.T) {
	f := &feed{subs: map[*sub]bool{}}
	f.take(history.Change{Value: model.Int(1), Revision: 1, Read: 1})
	began, problem := time.Now(), documentStatus{Revision: 1, Stale: "it was not computed yet", Passing: true}
	for _, step := range []struct {
		after time.Duration
		g     documentStatus
		want  Kind
	}{
		{0, documentStatus{Revision: 1}, Current},
		{time.Second, problem, Current},
		{2 * time.Second, documentStatus{Revision: 1}, Current},
		{gracePeriod + 2*time.Second, problem, Current},
		{2*gracePeriod + time.Second, problem, Current},
		{2*gracePeriod + 2*time.Second, problem, Stale},
	} {
		if f.applyStatus(step.g, began.Add(step.after)); f.status.Kind != step.want {
			t.Errorf("after %s the status is %+v, want %s", step.after, f.status, step.want)
		}
	}
}

// A changed reason is delivered as a new Stale.
func TestFeed_ReportsEachReason(t *testing.T) {
	f := &feed{subs: map[*sub]bool{}}
	s := &sub{feed: f, news: make(chan struct{}, 1)}
	f.subs[s] = true
	f.take(history.Change{Value: model.Int(1), Revision: 1, Read: 1})
	s.take()
	for _, why := range []string{"a fails", "b fails"} {
		f.applyStatus(documentStatus{Revision: 1, Stale: why}, time.Now())
		if news := s.take(); len(news) != 1 || news[0].Stale != why {
			t.Errorf("received %+v, want the reason %q", news, why)
		}
		f.applyStatus(documentStatus{Revision: 1, Stale: why}, time.Now())
		if news := s.take(); len(news) != 0 {
			t.Errorf("received %+v a second time", news)
		}
	}
}
