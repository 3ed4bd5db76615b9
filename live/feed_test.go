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

// Who knows a revision learns that the document is gone, although its deletion is forgotten: it
// is absent, as if there had never been one, as of what was read.
func TestFeed_TellsOfADeletionThatWasForgotten(t *testing.T) {
	f := &feed{subs: map[*sub]bool{}}
	back := &sub{feed: f, news: make(chan struct{}, 1), last: 5, begun: true}
	fresh := &sub{feed: f, news: make(chan struct{}, 1)}
	f.subs[back], f.subs[fresh] = true, true
	f.take(history.Change{Read: 9})
	if e := back.take()[0]; e.Kind != Deleted || e.Revision != 9 {
		t.Errorf("who knows revision 5 is told %+v", e)
	}
	if e := fresh.take()[0]; e.Kind != Deleted || e.Revision != 0 {
		t.Errorf("who knows nothing is told %+v", e)
	}
	f.take(history.Change{Value: model.Int(1), Revision: 12, Read: 12})
	f.take(history.Change{Revision: 20, Read: 20})
	for _, s := range []*sub{back, fresh} {
		if e := s.take()[0]; e.Kind != Deleted || e.Revision != 20 {
			t.Errorf("who watched is told %+v", e)
		}
	}
}

// A watch that joins is shown what the document was when it came, or later, but nothing older.
func TestFeed_AWatchThatJoinsIsShownNothingOlderThanItsCall(t *testing.T) {
	for _, c := range []struct {
		there uint64 // the revision that the document had when it came
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
		f := &feed{subs: map[*sub]bool{}, standing: Event{Kind: Current}}
		f.take(history.Change{Value: model.Int(3), Revision: 3, Read: 3})
		s := &sub{feed: f, news: make(chan struct{}, 1), waits: true}
		f.subs[s] = true
		s.offer(f.newest)
		s.hear(f.standing)
		if news := s.take(); len(news) > 0 {
			t.Errorf("it waits, and is shown %+v", news)
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
			t.Errorf("there was revision %d, then came %+v: shown %q, current %v; want %q", c.there, c.takes, shown, current, c.shown)
		}
	}
}

// The log has forgotten that the document was deleted, while the feed was behind.
func TestFeed_AWatchThatJoinsIsNotShownWhatWasDeletedAndForgotten(t *testing.T) {
	b := membus.NewServer(membus.Config{Partitions: 1}).Connect("a")
	defer b.Close()
	f := &feed{space: "s", doc: "n", ctx: t.Context(), subs: map[*sub]bool{}}
	f.take(history.Change{Value: model.Int(3), Revision: 3, Read: 3})
	s := &sub{feed: f, news: make(chan struct{}, 1), waits: true}
	f.subs[s] = true
	(&Server{bus: b}).confirm(f)
	if news := s.take(); len(news) > 0 {
		t.Errorf("it is shown %+v", news)
	}
	f.take(history.Change{Revision: 9, Read: 9})
	if news := s.take(); len(news) != 1 || news[0].Kind != Deleted {
		t.Errorf("then it is shown %+v", news)
	}
}

// A document is not called current before its value is here; if that lasts, the reading of the log
// does not get on, and who watches is told.
func TestFeed_IsCurrentWhenItHasTheValueThatTheOwnerHas(t *testing.T) {
	f := &feed{subs: map[*sub]bool{}}
	began := time.Now()
	said := func(want Kind, g glanced, after time.Duration) {
		t.Helper()
		if f.stands(g, began.Add(after)); f.standing.Kind != want {
			t.Errorf("after %s it is %+v, want %q", after, f.standing, want)
		}
	}
	said("", glanced{}, 0) // nothing was read yet
	f.take(history.Change{Read: 3})
	said(Current, glanced{}, time.Second)
	said(Current, glanced{Revision: 7}, 2*time.Second)
	said(Current, glanced{Revision: 9}, 6*time.Second)
	said(Stale, glanced{Revision: 9}, 11*time.Second)
	f.take(history.Change{Value: model.Int(1), Revision: 9, Read: 9})
	said(Current, glanced{Revision: 9}, 12*time.Second)
}

// The owner may know the revision of a deletion that the log has forgotten: who has read that far
// has what is.
func TestFeed_IsCurrentWhenADeletionWasForgottenThatTheOwnerRemembers(t *testing.T) {
	f := &feed{subs: map[*sub]bool{}}
	f.take(history.Change{Revision: 20, Read: 20})
	began := time.Now()
	for _, after := range []time.Duration{0, lasting + time.Second} {
		if f.stands(glanced{Revision: 9}, began.Add(after)); f.standing.Kind != Current {
			t.Errorf("after %s it is %+v", after, f.standing)
		}
	}
}

func TestCut_LeavesWholeCharacters(t *testing.T) {
	if s := cut(strings.Repeat("a", maxReason-1) + "é"); !utf8.ValidString(s) || len(s) > maxReason+4 {
		t.Errorf("%d bytes that end in %q", len(s), s[len(s)-6:])
	}
}

// When the store has gone back, who watches is told so first, and then what there is now, though its
// revision is lower: who was here, and who comes back with a revision that is not there any more.
func TestFeed_GoesBackWithTheStore(t *testing.T) {
	f := &feed{subs: map[*sub]bool{}}
	here := &sub{feed: f, news: make(chan struct{}, 1)}
	f.subs[here] = true
	f.take(history.Change{Value: model.Int(9), Revision: 9, Read: 9})
	here.take()
	wantBack := func(who string, s *sub) {
		t.Helper()
		if news := s.take(); len(news) != 2 || news[0].Kind != Rewound || news[1].Kind != Value || news[1].Revision != 3 {
			t.Errorf("%s is told %+v, want that the store has gone back, and the value of 3", who, news)
		}
	}
	f.back = true
	f.take(history.Change{Value: model.Int(3), Revision: 3, Read: 3, Rewound: true})
	wantBack("who was here", here)
	again := &sub{feed: f, news: make(chan struct{}, 1), last: 9, begun: true}
	again.compare(f)
	again.offer(f.newest)
	wantBack("who comes back", again)
	knows := &sub{feed: f, news: make(chan struct{}, 1), last: 3, begun: true}
	knows.compare(f)
	knows.offer(f.newest)
	if news := knows.take(); len(news) != 0 {
		t.Errorf("who knows what there is is told %+v", news)
	}
}

// A process that was started after the store went back knows nothing of that, but that a watcher
// comes with a revision which the document does not have, in a log that has been read further.
func TestFeed_AWatcherKnowsARevisionThatTheDocumentNeverHad(t *testing.T) {
	for _, c := range []struct {
		knows uint64
		back  bool
	}{{2, false}, {3, false}, {4, true}, {7, true}, {8, false}, {math.MaxUint64, false}} {
		f := &feed{subs: map[*sub]bool{}}
		f.take(history.Change{Value: model.Int(3), Revision: 3, Read: 7})
		s := &sub{feed: f, news: make(chan struct{}, 1), last: c.knows, begun: true}
		s.compare(f)
		s.offer(f.newest)
		news := s.take()
		if back := len(news) == 2 && news[0].Kind == Rewound && news[1].Revision == 3; back != c.back {
			t.Errorf("who knows revision %d is told %+v", c.knows, news)
		}
	}
	f := &feed{subs: map[*sub]bool{}} // a deletion that is forgotten has the revision up to which was read
	f.take(history.Change{Read: 7})
	s := &sub{feed: f, news: make(chan struct{}, 1), last: 5, begun: true}
	s.compare(f)
	s.offer(f.newest)
	if news := s.take(); len(news) != 1 || news[0].Kind != Deleted || news[0].Revision != 7 {
		t.Errorf("of a deletion that is forgotten is told %+v", news)
	}
}

// A client whose watch breaks after that does not ask from the revision that is gone.
func TestClient_ForgetsItsRevisionWithTheStore(t *testing.T) {
	var told []Kind
	w := watching{q: Watch{From: At(9)}, begun: true, deliver: func(e Event) { told = append(told, e.Kind) }}
	for _, e := range []Event{{Kind: Rewound}, {Kind: Value, Revision: 3}} {
		if err := w.take(e); err != nil {
			t.Fatal(err)
		}
		if w.q.From.Revision != e.Revision {
			t.Errorf("after %+v it would ask from %s", e, w.q.From)
		}
	}
	if len(told) != 2 {
		t.Errorf("told was %v", told)
	}
}

// narrow is an outlet through which nothing fits.
type narrow struct{ model.Outlet }

func (narrow) Say(model.Part) error { return fmt.Errorf("say: %w", model.ErrTooLarge) }

// A value that cannot be told ends the watch: the watcher would take the old one for the newest.
func TestSay_WhatDoesNotFitIsAnError(t *testing.T) {
	if err := say(narrow{}, Event{Kind: Value, Revision: 1, Data: []byte("1")}); !errors.Is(err, model.ErrTooLarge) {
		t.Errorf("the error is %v", err)
	}
}

// A doubt that was settled has lasted for no time when it comes up again.
func TestFeed_ADoubtThatWasSettledBeginsAnew(t *testing.T) {
	f := &feed{subs: map[*sub]bool{}}
	f.take(history.Change{Value: model.Int(1), Revision: 1, Read: 1})
	began, doubt := time.Now(), glanced{Revision: 1, Stale: "it has yet to be computed", Passing: true}
	for _, step := range []struct {
		after time.Duration
		g     glanced
		want  Kind
	}{
		{0, glanced{Revision: 1}, Current},
		{time.Second, doubt, Current},
		{2 * time.Second, glanced{Revision: 1}, Current},
		{lasting + 2*time.Second, doubt, Current},
		{2*lasting + time.Second, doubt, Current},
		{2*lasting + 2*time.Second, doubt, Stale},
	} {
		if f.stands(step.g, began.Add(step.after)); f.standing.Kind != step.want {
			t.Errorf("after %s it is %+v, want %s", step.after, f.standing, step.want)
		}
	}
}

// For another reason than before it is stale anew.
func TestFeed_TellsOfEachReason(t *testing.T) {
	f := &feed{subs: map[*sub]bool{}}
	s := &sub{feed: f, news: make(chan struct{}, 1)}
	f.subs[s] = true
	f.take(history.Change{Value: model.Int(1), Revision: 1, Read: 1})
	s.take()
	for _, why := range []string{"a fails", "b fails"} {
		f.stands(glanced{Revision: 1, Stale: why}, time.Now())
		if news := s.take(); len(news) != 1 || news[0].Stale != why {
			t.Errorf("told is %+v, want that %s", news, why)
		}
		f.stands(glanced{Revision: 1, Stale: why}, time.Now())
		if news := s.take(); len(news) != 0 {
			t.Errorf("told is %+v, which was told before", news)
		}
	}
}
