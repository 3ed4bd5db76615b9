package replica

import (
	"fmt"

	"github.com/settlehq/settle/model"
)

// Document follows a single document through the log, for mirrors and live queries.
type Document struct {
	ID    string
	Value model.Value
	// Seq is the log sequence of the last commit that changed the document. It serves as the document's
	// revision: it only grows, whichever worker owns the space.
	Seq uint64
	// Read is the log sequence up to which the log has been read: Value is that of the document in the state after it.
	Read uint64
}

// LoadDocument returns the document from the saved state. It is current once the log after Read has been
// applied.
func LoadDocument(id string, st model.SpaceState) (*Document, error) {
	d := &Document{ID: id, Read: st.Mark.Seq}
	old, err := readStale(&st.Mark)
	if err != nil {
		return nil, fmt.Errorf("load document %s: %w", id, err)
	}
	for i := range st.Docs {
		if st.Docs[i].Doc != id || old.has(&st.Docs[i]) {
			continue
		}
		v, err := parse(st.Docs[i].Data)
		if err != nil {
			return nil, fmt.Errorf("load document %s: %w", id, err)
		}
		d.Value, d.Seq = v, st.Docs[i].Changed()
		d.Read = max(d.Read, st.Docs[i].Seq) // the item is ahead of the mark while a checkpoint is being saved
	}
	return d, nil
}

// Apply applies the next log entry and reports whether it changed the document. The error is
// model.ErrPurged if entries are missing before it: the document must be loaded again.
func (d *Document) Apply(e model.LogEntry) (bool, error) {
	return d.Take(&e, e.Commit)
}

// Take is Apply with a function that returns the commit of the entry.
func (d *Document) Take(e *model.LogEntry, read func() (*model.Commit, error)) (bool, error) {
	if e.Seq <= d.Read {
		return false, nil
	}
	if err := e.Follows(d.Read); err != nil {
		return false, err
	}
	c, err := read()
	if err != nil {
		return false, err
	}
	d.Read = e.Seq
	return d.apply(e.Seq, c)
}

func (d *Document) apply(seq uint64, c *model.Commit) (bool, error) {
	v, hit := d.Value, false
	for i := range c.Txs {
		for j := range c.Txs[i].Writes {
			w := &c.Txs[i].Writes[j]
			if w.Doc != d.ID {
				continue
			}
			var err error
			if v, err = w.Apply(v); err != nil {
				return false, fmt.Errorf("log of space %s, sequence %d: %w", c.Space, seq, err)
			}
			hit = true
		}
	}
	if !hit {
		return false, nil
	}
	d.Value, d.Seq = v, seq
	return true, nil
}
