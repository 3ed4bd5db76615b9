package worldtest

import (
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
)

// Append appends a commit to the log of its space, and returns its sequence. A commit without a
// cursor leaves that of the space where it is.
func (w *World) Append(c *model.Commit) uint64 {
	w.Helper()
	c.Version = model.CommitVersion
	head := w.Server.Head(c.Space)
	if c.Cursor.Floor == 0 && head > 0 {
		c.Cursor = w.cursor(c.Space, head)
	}
	seq, err := w.Server.Append(model.Append{Space: c.Space, Expect: head, Data: model.AppendCommit(nil, c, nil)})
	if err != nil {
		w.Fatal(err)
	}
	return seq
}

// cursor returns the cursor of a space after its last entry, none if that cannot be read.
func (w *World) cursor(space string, head uint64) model.Cursor {
	for _, e := range w.Server.ReadLog(space, head-1, 1) {
		if last, err := model.DecodeCommit(e.Data); err == nil {
			return last.Cursor
		}
	}
	return model.Cursor{}
}

// Forge appends bytes that are no commit to the log of a space, as any program with the right to publish there can, and returns
// their sequence. Commits leaves them out.
func (w *World) Forge(space, data string) uint64 {
	w.Helper()
	seq, err := w.Server.Append(model.Append{Space: space, Expect: w.Server.Head(space), Data: []byte(data)})
	if err != nil {
		w.Fatal(err)
	}
	if w.forged == nil {
		w.forged = map[string]bool{}
	}
	w.forged[data] = true
	return seq
}

// Commits returns the whole log of a space, including purged commits.
func (w *World) Commits(space string) (list []*model.Commit) {
	w.Helper()
	for _, e := range w.Server.History(space) {
		if w.forged[string(e.Data)] {
			continue
		}
		c, err := model.DecodeCommit(e.Data)
		if err != nil {
			w.Fatal(err)
		}
		list = append(list, c)
	}
	return list
}

// Receipts returns the receipts of a space in the order of its log.
func (w *World) Receipts(space string) (list []*model.Receipt) {
	w.Helper()
	for _, c := range w.Commits(space) {
		for i := range c.Txs {
			if rc := c.Txs[i].Receipt; rc != nil {
				list = append(list, rc)
			}
		}
	}
	return list
}

// Takeovers returns the runtimes that have taken a space over, in order.
func (w *World) Takeovers(space string) (by []string) {
	w.Helper()
	for _, c := range w.Commits(space) {
		if c.Takeover {
			by = append(by, c.Runtime)
		}
	}
	return by
}

// Lane returns the ids of the events in the lane of a space, in order.
func (w *World) Lane(space string) (ids []string) {
	for _, m := range w.Server.ReadLane(space, 0, 1<<30) {
		ids = append(ids, m.ID)
	}
	return ids
}

// Read returns a document from the log.
func (w *World) Read(space, doc string) *replica.Document {
	w.Helper()
	d, err := history.Read(w.Context(), w.Client, space, doc)
	if err != nil {
		w.Fatal(err)
	}
	return d
}

// Doc returns the value of a document from the log.
func (w *World) Doc(space, doc string) string {
	w.Helper()
	return w.Read(space, doc).Value.String()
}
