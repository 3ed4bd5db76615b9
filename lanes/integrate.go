package lanes

import (
	"slices"

	"github.com/settlehq/settle/model"
)

// Integrate takes in a commit that another runtime made to the same space: what
// it decided is not to be handled here any more, what it launched is. The lane
// must be rewound: nothing may be undecided.
func (l *Lane) Integrate(c *model.Commit) {
	decided := decisions(c)
	l.entries = slices.DeleteFunc(l.entries, func(e entry) bool {
		return decided.event(&e.ev)
	})
	l.held = slices.DeleteFunc(l.held, func(ev model.Event) bool { return decided.event(&ev) })
	for i := range c.Txs {
		l.integrateTx(c.Space, &c.Txs[i])
	}
	l.adopt(c.Cursor)
}

func (l *Lane) integrateTx(space string, tx *model.Tx) {
	if rc := tx.Receipt; rc != nil && rc.Pos > 0 {
		ev := model.Event{ID: rc.Event, Position: rc.Pos}
		l.inbound[ev.Origin()] = max(l.inbound[ev.Origin()], rc.Pos)
	}
	for i := range tx.Sends {
		if tx.Sends[i].To == space {
			l.own = append(l.own, tx.Sends[i].Event())
		}
	}
}

// adopt moves to the cursor of the foreign commit: events up to it that were
// never offered here are done as well, but for those it had set aside.
func (l *Lane) adopt(c model.Cursor) {
	for _, seq := range c.Held {
		if seq > l.seen && !slices.Contains(l.reclaim, seq) {
			l.reclaim = append(l.reclaim, seq)
		}
	}
	slices.Sort(l.reclaim)
	l.floor = max(l.floor, c.Floor)
	l.seen = max(l.seen, c.Floor)
	l.releaseOwn(l.seen)
}

// decisionSet tells which events a commit has decided.
type decisionSet struct {
	cursor model.Cursor
	own    map[string]bool // follow-ups by id
}

func decisions(c *model.Commit) decisionSet {
	d := decisionSet{cursor: c.Cursor, own: map[string]bool{}}
	for i := range c.Txs {
		if rc := c.Txs[i].Receipt; rc != nil && rc.Lane == 0 {
			d.own[rc.Event] = true
		}
	}
	return d
}

func (d decisionSet) event(ev *model.Event) bool {
	if ev.Lane == 0 {
		return d.own[ev.ID]
	}
	return ev.Lane <= d.cursor.Floor && !slices.Contains(d.cursor.Held, ev.Lane)
}
