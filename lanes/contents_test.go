package lanes

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/model"
)

// look is the contents of a lane at one time, and the same as text.
type look struct {
	contents Contents
	was      string
}

// lookAt compares the contents of a lane with its parts.
func lookAt(t *rapid.T, l *Lane) look {
	c := l.Contents()
	if len(c.Undecided)+len(c.Queue) != len(l.entries) {
		t.Fatalf("the contents have %d and %d events, the lane %v", len(c.Undecided), len(c.Queue), ids(queued(l)))
	}
	for i, ev := range slices.Concat(c.Undecided, c.Queue) {
		if ev.ID != l.entries[i].ID || (i < len(c.Undecided)) != (i < l.Undecided()) {
			t.Fatalf("event %d of the contents is %s, that of the lane %s", i, ev.ID, l.entries[i].ID)
		}
	}
	early, own := l.held.all(), l.own
	if len(c.Early) != len(early) || len(c.FollowUps) != len(own) || c.Unread != (len(l.reclaim) > 0 || l.refused > l.seen) {
		t.Fatalf("the contents are %+v; the lane has %d early events, and follow-ups %v behind an unread event", c, len(early), ids(own))
	}
	for i, e := range c.Early {
		if (turn{e.Origin, e.Position}) != early[i].turn || e.Lane != early[i].lane || e.Event != early[i].ev {
			t.Fatalf("early event %d of the contents is %+v, that of the lane %+v", i, e, early[i])
		}
	}
	for i, ev := range c.FollowUps {
		if ev.ID != own[i].ID {
			t.Fatalf("follow-up %d of the contents is %s, that of the lane %s", i, ev.ID, own[i].ID)
		}
	}
	return look{c, contentsText(c)}
}

func contentsText(c Contents) string {
	var b strings.Builder
	for _, list := range [][]*model.Event{c.Undecided, c.Queue, c.FollowUps} {
		for _, ev := range list {
			fmt.Fprintf(&b, "%+v ", *ev)
		}
		b.WriteString("; ")
	}
	for _, e := range c.Early {
		fmt.Fprintf(&b, "%d %s %d %v ", e.Lane, e.Origin, e.Position, e.Event)
	}
	return fmt.Sprint(b.String(), c.Unread)
}
