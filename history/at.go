package history

import (
	"context"
	"fmt"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/replica"
)

// PastError reports that a document at a revision is no longer known: the log was purged, and what is left
// does not determine the document.
type PastError struct {
	Space, Doc string
	At         uint64
	// From is the first revision that can still be read, 0 if only the present one can.
	From uint64
}

func (e *PastError) Error() string {
	text := fmt.Sprintf("document %s of space %s at revision %d is no longer known: the log was purged up to there (--history keeps more)", e.Doc, e.Space, e.At)
	if e.From > 0 {
		return text + fmt.Sprintf("; the first revision that can be read is %d", e.From)
	}
	return text
}

// ReadAt returns a document as of a log sequence. The error is a *PastError if too much of the log was
// purged.
func ReadAt(ctx context.Context, bus port.Client, space, doc string, at uint64) (d *replica.Document, err error) {
	now, err := Read(ctx, bus, space, doc)
	switch {
	case err != nil:
		return nil, err
	case at > now.Read:
		return nil, fmt.Errorf("read %s of space %s at revision %d: the last commit of the space is at %d", doc, space, at, now.Read)
	case at >= now.Seq && now.Seq > 0:
		return now, nil // unchanged since
	}
	err = OverGaps(ctx, space, func() error {
		d, err = replayUpTo(ctx, bus, space, doc, at)
		return err
	})
	return d, err
}

// replayUpTo reconstructs the document from what is left of the log. A commit that writes the whole document
// determines it, whatever came before.
func replayUpTo(ctx context.Context, bus port.Client, space, doc string, at uint64) (*replica.Document, error) {
	p := past{Document: replica.Document{ID: doc}, at: at}
	for after := uint64(0); ; {
		entries, err := bus.ReadLog(ctx, space, after, readPage)
		if err != nil {
			return nil, fmt.Errorf("read log of space %s after %d: %w", space, after, err)
		}
		for i := range entries {
			after = entries[i].Seq
			if err := p.take(&entries[i]); err != nil {
				return nil, err
			}
			if p.over {
				return p.answer(space)
			}
		}
		if len(entries) < readPage {
			return p.answer(space)
		}
	}
}

// past is a document reconstructed from the log alone.
type past struct {
	replica.Document
	at    uint64
	begun bool
	known bool   // whether the document is determined
	from  uint64 // the sequence from which on it is determined
	over  bool
}

// take applies a commit. Until at, it looks for the first commit that determines the document.
func (p *past) take(e *model.LogEntry) error {
	if !p.begun {
		p.begun, p.Read, p.known = true, e.Prev, e.Prev == 0
	}
	if e.Seq > p.at && p.known {
		p.over = true
		return nil
	}
	c, err := e.Commit()
	if err != nil {
		return err
	}
	if !p.known && !writesWhole(c, p.ID) {
		p.Read = e.Seq
		return nil
	}
	if p.from == 0 {
		p.from = e.Seq
	}
	p.known = true
	if p.over = e.Seq > p.at; p.over {
		return nil
	}
	_, err = p.Apply(*e)
	return err
}

// writesWhole reports whether the first write of a commit to a document replaces all of it.
func writesWhole(c *model.Commit, doc string) bool {
	for i := range c.Txs {
		for j := range c.Txs[i].Writes {
			if w := &c.Txs[i].Writes[j]; w.Doc == doc {
				return len(w.Path) == 0
			}
		}
	}
	return false
}

func (p *past) answer(space string) (*replica.Document, error) {
	if !p.known || p.from > p.at {
		return nil, &PastError{Space: space, Doc: p.ID, At: p.at, From: p.from}
	}
	return &p.Document, nil
}
