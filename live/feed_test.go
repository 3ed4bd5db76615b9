package live

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/settlehq/settle/lookup"
	"github.com/settlehq/settle/model"
)

// A reading of the log that begins again may begin with what was before.
func TestFeed_TakesNothingThatIsOlder(t *testing.T) {
	f := &feed{subs: map[*sub]bool{}}
	for _, c := range []lookup.Change{
		{Value: model.Int(0)}, // there is none so far
		{Value: model.Int(3), Revision: 3},
		{Value: model.Int(2), Revision: 2},
		{Value: model.Int(3), Revision: 3},
		{Value: model.Int(5), Revision: 5, Previous: 3},
		{Value: model.Int(4), Revision: 4},
	} {
		f.take(c)
	}
	if e := f.newest; e.Revision != 5 || string(e.Data) != "5" || e.Previous != 3 {
		t.Errorf("the newest is %+v", e)
	}
}

// Who knows a revision learns that the document is gone, although its deletion is forgotten: it
// is absent, as if there had never been one, as of what was read. So does who watches while the
// reading begins again.
func TestFeed_TellsOfADeletionThatWasForgotten(t *testing.T) {
	f := &feed{subs: map[*sub]bool{}}
	back := &sub{feed: f, news: make(chan struct{}, 1), last: 5, begun: true}
	fresh := &sub{feed: f, news: make(chan struct{}, 1)}
	f.subs[back], f.subs[fresh] = true, true
	f.take(lookup.Change{Read: 9})
	if e := back.take()[0]; e.Kind != Deleted || e.Revision != 9 {
		t.Errorf("who knows revision 5 is told %+v", e)
	}
	if e := fresh.take()[0]; e.Kind != Deleted || e.Revision != 0 {
		t.Errorf("who knows nothing is told %+v", e)
	}
	f.take(lookup.Change{Value: model.Int(1), Revision: 12, Read: 12})
	f.take(lookup.Change{Read: 12}) // behind: the reading began again, and knows no better
	if f.newest.Kind != Value {
		t.Errorf("the newest is %+v", f.newest)
	}
	f.take(lookup.Change{Read: 20})
	f.take(lookup.Change{Read: 25}) // nothing new
	for _, s := range []*sub{back, fresh} {
		if e := s.take()[0]; e.Kind != Deleted || e.Revision != 20 {
			t.Errorf("who watched is told %+v", e)
		}
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
	f.take(lookup.Change{Read: 3})
	said(Current, glanced{}, time.Second)
	said(Current, glanced{Revision: 7}, 2*time.Second)
	said(Current, glanced{Revision: 9}, 6*time.Second)
	said(Stale, glanced{Revision: 9}, 11*time.Second)
	f.take(lookup.Change{Value: model.Int(1), Revision: 9, Read: 9})
	said(Current, glanced{Revision: 9}, 12*time.Second)
}

// The owner may know the revision of a deletion that the log has forgotten: who has read that far
// has what is.
func TestFeed_IsCurrentWhenADeletionWasForgottenThatTheOwnerRemembers(t *testing.T) {
	f := &feed{subs: map[*sub]bool{}}
	f.take(lookup.Change{Read: 20})
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
