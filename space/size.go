package space

import (
	"fmt"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
)

// A document is saved as one message, so it must fit into one. Its writes may each be
// small, so its size is watched here: a document whose writes since it was last measured could have made it too
// large is measured again. That costs its encoding once per limit's worth of writes.

// sizes watches over the size of documents.
type sizes struct {
	graph *graph
	// most is the largest encoded document: what a commit could carry too.
	most   int
	buffer []byte
}

// documentsFit reports why the documents that tx changes could not be saved.
func (s *sizes) documentsFit(d *ledger.Draft) error {
	tx := d.Context.(*Tx)
	for i := range tx.attempt.Writes {
		w := &tx.attempt.Writes[i]
		if at := tx.place(s.graph.local(w.Doc)); at >= 0 {
			tx.after[at].added += s.writtenSize(w)
		}
	}
	for _, w := range tx.after {
		if w.doc.measured && int(w.doc.sizeBound)+w.added <= s.most {
			w.doc.sizeBound += int32(w.added)
			continue
		}
		if err := s.fits(w); err != nil {
			return err
		}
	}
	return nil
}

// fits measures a document as it is about to become. One that is larger than it should be (see
// endTask; or the bound was another one once) may become smaller step by step.
func (s *sizes) fits(w docValue) error {
	s.buffer = w.value.AppendJSON(s.buffer[:0])
	n := len(s.buffer)
	if n > s.most && n >= len(w.doc.value.AppendJSON(nil)) {
		return fmt.Errorf("write %s: the document would have %d bytes, %d are allowed; split it into several documents", w.doc.key.doc, n, s.most)
	}
	w.doc.sizeBound, w.doc.measured = int32(n), true
	if cap(s.buffer) > 64<<10 {
		s.buffer = nil // do not keep what one large document needed
	}
	return nil
}

// writtenSize returns what a write can add to a document at most: its value, and the
// members along its path if they have to be made.
func (s *sizes) writtenSize(w *model.Write) int {
	n := 4 * (len(w.Path) + 1)
	for _, seg := range w.Path {
		n += 6 * len(seg) // every character escaped
	}
	s.buffer = w.Value.AppendJSON(s.buffer[:0])
	return n + len(s.buffer)
}

// roomFor reports whether a document, as a transaction leaves it, may have so many bytes more.
func (s *sizes) roomFor(tx *Tx, d *doc, more int) bool {
	s.buffer = tx.current(d).AppendJSON(s.buffer[:0])
	return len(s.buffer)+more <= s.most
}
