package test

import (
	"fmt"
	"testing"
	"time"
)

// telling builds a history step by step: operations begin and end in the order of the calls.
type telling struct {
	h   *callHistory
	now time.Duration
}

func (s *telling) op(kind kind, id string, out answered) {
	s.h.add("c", asked{kind: kind, space: "s", id: id}, out, s.now, s.now+1)
	s.now += 2
}

func TestHistoryChecker(t *testing.T) {
	t.Parallel()
	for _, story := range []struct {
		what string
		tell func(s *telling)
		want bool
	}{
		{"one event after the other", func(s *telling) {
			s.op(sent, "e1", answered{})
			s.op(sent, "e2", answered{})
			s.op(sent, "e1", answered{duplicate: true})
			s.op(read, "", answered{n: 1})
			s.op(found, "e2", answered{})
			s.op(awaited, "e2", answered{n: 2})
			s.op(awaited, "e1", answered{n: 1})
			s.op(rested, "", answered{n: 2})
		}, true},
		{"a send without an answer took effect later", func(s *telling) {
			s.op(sent, "e1", answered{open: true})
			s.op(sent, "e2", answered{})
			s.op(awaited, "e2", answered{n: 1})
			s.op(awaited, "e1", answered{n: 2})
			s.op(rested, "", answered{n: 2})
		}, true},
		{"a send without an answer never took effect", func(s *telling) {
			s.op(sent, "e1", answered{open: true})
			s.op(rested, "", answered{})
		}, true},
		{"an acknowledged event is lost", func(s *telling) {
			s.op(sent, "e1", answered{})
			s.op(rested, "", answered{})
		}, false},
		{"an acknowledged event is lost behind another", func(s *telling) {
			s.op(sent, "e1", answered{})
			s.op(sent, "e2", answered{})
			s.op(awaited, "e2", answered{n: 1})
			s.op(rested, "", answered{n: 1})
		}, false},
		{"an event took effect twice", func(s *telling) {
			s.op(sent, "e1", answered{})
			s.op(awaited, "e1", answered{n: 1})
			s.op(rested, "", answered{n: 2})
		}, false},
		{"an event took effect twice, before another", func(s *telling) {
			s.op(sent, "e1", answered{})
			s.op(sent, "e2", answered{})
			s.op(awaited, "e1", answered{n: 1})
			s.op(awaited, "e2", answered{n: 3})
			s.op(rested, "", answered{n: 3})
		}, false},
		{"an event has two receipts", func(s *telling) {
			s.op(sent, "e1", answered{})
			s.op(awaited, "e1", answered{n: 1})
			s.op(sent, "e2", answered{})
			s.op(awaited, "e1", answered{n: 2})
		}, false},
		{"an event was stored twice", func(s *telling) {
			s.op(sent, "e1", answered{})
			s.op(sent, "e1", answered{})
			s.op(awaited, "e1", answered{n: 1})
		}, false},
		{"events have changed places", func(s *telling) {
			s.op(sent, "e1", answered{})
			s.op(sent, "e2", answered{})
			s.op(awaited, "e1", answered{n: 2})
			s.op(awaited, "e2", answered{n: 1})
			s.op(rested, "", answered{n: 2})
		}, false},
		{"a receipt is gone again", func(s *telling) {
			s.op(sent, "e1", answered{})
			s.op(awaited, "e1", answered{n: 1})
			s.op(found, "e1", answered{})
		}, false},
		{"a count goes back", func(s *telling) {
			s.op(sent, "e1", answered{})
			s.op(read, "", answered{n: 1})
			s.op(awaited, "e1", answered{n: 1})
			s.op(read, "", answered{})
		}, false},
		{"a count is ahead of its events", func(s *telling) {
			s.op(read, "", answered{n: 1})
			s.op(sent, "e1", answered{})
			s.op(awaited, "e1", answered{n: 1})
		}, false},
	} {
		t.Run(story.what, func(t *testing.T) {
			s := &telling{h: newHistory()}
			story.tell(s)
			if got := s.h.allowed(); got != story.want {
				t.Errorf("allowed: %t, want %t", got, story.want)
			}
		})
	}
}

// The checker is useful only if it terminates, for valid and invalid histories.
func TestHistoryChecker_IsQuickWithManyClientsOnOneSpace(t *testing.T) {
	t.Parallel()
	for _, last := range []int{400, 401} {
		s := &telling{h: newHistory()}
		for i := range 400 { // four of which are concurrent at any time
			id := fmt.Sprint("e", i)
			at := time.Duration(2 * i)
			if i%10 == 0 {
				s.h.add("c", asked{kind: sent, space: "s", id: id}, answered{open: true}, at, at)
			}
			s.h.add("c", asked{kind: sent, space: "s", id: id}, answered{duplicate: i%10 == 0}, at, at+3)
			s.h.add("c", asked{kind: awaited, space: "s", id: id}, answered{n: i + 1}, at+4, at+7)
		}
		s.now = 1000
		s.op(rested, "", answered{n: last})
		if got := s.h.allowed(); got != (last == 400) {
			t.Errorf("%d events of which 400 are handled: allowed is %t", last, got)
		}
	}
}
