package space

import (
	"fmt"
	"slices"

	"github.com/settlehq/settle/model"
)

// A document is saved as one message, so its size is limited. A transaction may add only little to a large
// document, so sizes are tracked here: a document is measured again when its writes since the last
// measurement could exceed the limit. That costs one encoding per limit's worth of writes.

// sizes tracks the sizes of documents.
type sizes struct {
	graph *graph
	// most is the largest permitted size of an encoded document, which also fits into a commit.
	most   int
	buffer []byte
}

// documentsFit returns an error if a document that the transaction changes is too large to be saved.
func (s *sizes) documentsFit(tx *transaction) error {
	for i := range tx.attempt.Writes {
		w := &tx.attempt.Writes[i]
		if at := tx.place(s.graph.local(w.Doc)); at >= 0 {
			v, size := &tx.after[at], s.writtenSize(w)
			if len(w.Path) == 0 { // it replaces the document, whose size is known by that
				v.whole, v.added = true, 0
			}
			v.added += size
		}
	}
	for _, w := range tx.after {
		if w.whole && w.added <= s.most {
			w.doc.sizeBound, w.doc.measured = int32(w.added), true
			continue
		}
		if !w.whole && w.doc.measured && int(w.doc.sizeBound)+w.added <= s.most {
			w.doc.sizeBound += int32(w.added)
			continue
		}
		if err := s.fits(w); err != nil {
			return err
		}
	}
	return nil
}

// narrowed is the size in bytes from which on a document that is replaced is compared with what it was.
const narrowed = 1 << 10

// save is documentsFit for a transaction that is to be committed: where it replaces a large document, its writes become those of what differs, if they are
// less than half as large. So the log grows by what has changed, whether a handler sets a field or changes a copy of the document and sets it as a whole.
func (s *sizes) save(tx *transaction) error {
	if err := s.documentsFit(tx); err != nil {
		return err
	}
	for i := range tx.after {
		w := &tx.after[i]
		if !w.whole || w.added < narrowed || w.value.Kind() != model.KindObject || w.doc.value.Kind() != model.KindObject {
			continue
		}
		name := w.doc.key.doc
		changes, less := s.differences(name, w.doc.value, w.value, w.added/2)
		if less {
			tx.attempt.Writes = append(slices.DeleteFunc(tx.attempt.Writes, func(w model.Write) bool { return w.Doc == name }), changes...)
		}
	}
	return nil
}

// differences returns the writes of model.Diff, false if they are larger than most.
func (s *sizes) differences(doc string, before, after model.Value, most int) (writes []model.Write, less bool) {
	sum := 0
	for w := range model.Differences(doc, before, after) {
		if sum += s.writtenSize(&w); sum > most {
			return nil, false
		}
		writes = append(writes, w)
	}
	return writes, true
}

// output returns the writes of model.Diff for what a computation derives, or one of the document as a whole if to name the places alone takes more than
// half of the room in a commit.
func (s *sizes) output(doc string, before, after model.Value) (writes []model.Write) {
	names := 0
	for w := range model.Differences(doc, before, after) {
		names += len(doc) + len(`["",""],`)
		for _, step := range w.Path {
			names += 1 + len(step)
		}
		if len(w.Path) > 0 && names > s.most/2 {
			return []model.Write{{Doc: doc, Value: after}}
		}
		writes = append(writes, w)
	}
	return writes
}

// fits measures a document after a write. One that is already too large (see endTask; or the limit was
// different when it was written) may shrink step by step.
func (s *sizes) fits(w docValue) error {
	s.buffer = w.value.AppendJSON(s.buffer[:0])
	n := len(s.buffer)
	if n > s.most && n >= len(w.doc.value.AppendJSON(nil)) {
		return fmt.Errorf("write %s: the document would have %d bytes, %d are allowed; split it into several documents", w.doc.key.doc, n, s.most)
	}
	w.doc.sizeBound, w.doc.measured = int32(n), true
	if cap(s.buffer) > 64<<10 {
		s.buffer = nil // do not keep a large buffer
	}
	return nil
}

// writtenSize returns an upper bound of the bytes that a write adds to a document: its value, and the members
// along its path if they have to be created.
func (s *sizes) writtenSize(w *model.Write) int {
	n := 4 * (len(w.Path) + 1)
	for _, seg := range w.Path {
		n += 6 * len(seg) // assume that every character is escaped
	}
	s.buffer = w.Value.AppendJSON(s.buffer[:0])
	return n + len(s.buffer)
}

// roomFor reports whether a document, after the transaction's writes, has room for more bytes.
func (s *sizes) roomFor(tx *transaction, d *doc, more int) bool {
	s.buffer = tx.current(d).AppendJSON(s.buffer[:0])
	return len(s.buffer)+more <= s.most
}
