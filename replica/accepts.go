package replica

import (
	"fmt"

	"github.com/settlehq/settle/model"
)

// Accepts returns an error unless a commit can be the next one of the space. The error is an
// *model.UnreadableError.
//
// It checks the commit against the log before it: the commit that it was appended after, its epoch, which
// must have begun, the cursor, which never goes back, and the positions of its sends, which are dense. It
// does not check the author, because a replica does not know the runtimes that have joined.
func (r *Replica) Accepts(e *model.LogEntry, c *model.Commit) error {
	if err := r.accepts(e, c); err != nil {
		return e.Unreadable(err)
	}
	return nil
}

func (r *Replica) accepts(e *model.LogEntry, c *model.Commit) error {
	begins := c.Takeover || c.Join
	fills := !begins && len(c.Txs) == 0 // `settle accept-loss` fills a log that has lost its end
	switch {
	case r.Seq == 0:
		return nil
	case e.Prev < r.Seq && !fills:
		return fmt.Errorf("it was appended behind %d, and the log has commit %d of the space before it", e.Prev, r.Seq)
	case c.Cursor.Floor < r.Cursor.Floor:
		return fmt.Errorf("its cursor is at %d of the lane, and the space is done up to %d", c.Cursor.Floor, r.Cursor.Floor)
	case c.Epoch > r.Seq:
		return fmt.Errorf("it is of epoch %d, which has not begun at %d", c.Epoch, r.Seq)
	}
	return r.acceptsSends(c)
}

// acceptsSends checks the positions of sends to other spaces.
func (r *Replica) acceptsSends(c *model.Commit) error {
	var last map[string]uint64
	for i := range c.Txs {
		for j := range c.Txs[i].Sends {
			s := &c.Txs[i].Sends[j]
			if s.To == r.Space {
				continue
			}
			before, known := last[s.To]
			if !known {
				before = r.Outbound[s.To].Position
			}
			if s.Position > before+1 {
				return fmt.Errorf("it sends event number %d to space %.80q, and the last one was number %d", s.Position, s.To, before)
			}
			if last == nil {
				last = map[string]uint64{}
			}
			last[s.To] = max(before, s.Position)
		}
	}
	return nil
}
