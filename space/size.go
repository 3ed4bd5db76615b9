package space

import (
	"fmt"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
)

// A document is saved as one message, so it must fit into one. Its writes may each be
// small, so its size is watched here: a document whose writes since it was last measured could have made it too
// large is measured again. That costs its encoding once per limit's worth of writes.

// documentsFit reports why the documents that tx changes could not be saved.
func (s *Space) documentsFit(d *ledger.Draft) error {
	tx := d.Context.(*Tx)
	for i := range tx.attempt.Writes {
		w := &tx.attempt.Writes[i]
		if at := tx.place(s.graph.local(w.Doc)); at >= 0 {
			tx.after[at].added += s.writtenSize(w)
		}
	}
	for _, w := range tx.after {
		if w.doc.measured && int(w.doc.sizeBound)+w.added <= s.maxDocument() {
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
func (s *Space) fits(w docValue) error {
	s.measuring = w.value.AppendJSON(s.measuring[:0])
	n := len(s.measuring)
	if n > s.maxDocument() && n >= len(w.doc.value.AppendJSON(nil)) {
		return fmt.Errorf("write %s: the document would have %d bytes, %d are allowed; split it into several documents", w.doc.key.doc, n, s.maxDocument())
	}
	w.doc.sizeBound, w.doc.measured = int32(n), true
	if cap(s.measuring) > 64<<10 {
		s.measuring = nil // do not keep what one large document needed
	}
	return nil
}

// maxDocument is the largest encoded document: what a commit could carry too.
func (s *Space) maxDocument() int { return s.cfg.MaxCommitBytes - ledger.FrameBytes }

// writtenSize is what a write can add to a document at most: its value, and the
// members along its path if they have to be made.
func (s *Space) writtenSize(w *model.Write) int {
	n := 4 * (len(w.Path) + 1)
	for _, seg := range w.Path {
		n += 6 * len(seg) // every character escaped
	}
	s.measuring = w.Value.AppendJSON(s.measuring[:0])
	return n + len(s.measuring)
}
