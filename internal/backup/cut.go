package backup

import (
	"fmt"

	"github.com/settlehq/settle/bus/streamcopy"
	"github.com/settlehq/settle/model"
)

// event is an event of a lane after the chosen end.
type event struct {
	*streamcopy.Stored
	space, id string
	taken     bool
}

func readEvent(s *streamcopy.Stored) event {
	m, _ := streamcopy.EventOf(s) // a message that is not an event belongs to no space, and is ignored
	return event{Stored: s, space: m.Space, id: m.ID}
}

// commit is a commit of a log after the chosen end.
type commit struct {
	*streamcopy.Stored
	space   string
	handled uint64   // the sequence up to which it has handled the events of its space
	causes  []string // the ids of the events that come from it
}

func readCommit(s *streamcopy.Stored) (commit, error) {
	c, err := model.DecodeCommit(s.Data)
	if err != nil {
		return commit{}, fmt.Errorf("message %d of %s: %w", s.Seq, s.Subject, err)
	}
	d := commit{Stored: s, space: streamcopy.SpaceOfCommit(s), handled: c.Cursor.Floor}
	for _, held := range c.Cursor.Held {
		d.handled = max(d.handled, held)
	}
	for i := range c.Txs {
		d.take(&c.Txs[i])
	}
	return d, nil
}

// take records the event that a transaction has handled, and the ids of events that it can cause: those it sends, and for an
// event that failed, its failure notice and its redriven event.
func (d *commit) take(tx *model.Tx) {
	for k := range tx.Sends {
		d.causes = append(d.causes, tx.Sends[k].ID)
	}
	if r := tx.Receipt; r != nil {
		d.handled = max(d.handled, r.Lane)
		if r.Outcome != model.Handled {
			d.causes = append(d.causes, model.NoticeID(r.Event), model.RedriveID(r.Event))
		}
	}
}

func (d *commit) noteHandled(of map[string]uint64) {
	of[d.space] = max(of[d.space], d.handled)
}

// place is a sequence in the log of a partition.
type place struct {
	p   *part
	seq uint64
}

// cut moves the chosen ends of the logs, and takes events after those of the lanes, until
// the backup contains the cause of each of its messages. It moves no end further than necessary.
func cut(parts []*part) {
	from := map[string]place{}
	for _, p := range parts {
		for i := range p.commits {
			for _, id := range p.commits[i].causes {
				if _, known := from[id]; !known {
					from[id] = place{p, p.commits[i].Seq}
				}
			}
		}
	}
	for moved := true; moved; {
		moved = false
		for _, p := range parts {
			moved = p.takeEvents(from) || moved
		}
	}
}

// takeEvents takes the events that the commits up to the end of the log have handled, and reports
// whether an end has moved for them.
func (p *part) takeEvents(from map[string]place) (moved bool) {
	for i := range p.commits {
		if p.commits[i].Seq <= p.logEnd {
			p.commits[i].noteHandled(p.handled)
		}
	}
	for i := range p.events {
		e := &p.events[i]
		if e.taken || e.Seq > p.handled[e.space] {
			continue
		}
		e.taken = true
		if cause, behind := from[e.id]; behind && cause.seq > cause.p.logEnd {
			cause.p.logEnd, moved = cause.seq, true
		}
	}
	return moved
}
