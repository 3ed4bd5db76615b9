package replica

import (
	"slices"

	"github.com/settlehq/settle/model"
)

// stale tells documents that should not be there. The marker of a deleted document is purged
// after a while. An owner that was deposed long ago, and still has to save what the document
// was before, then finds nothing in its place that is newer, and puts it back.
//
// Everything that a mark covers was stored before it, and an owner stores all that was
// committed before its own time before its first mark. So a document was put back if it
//
//   - was stored behind a mark that covers it: the last one, or the one that the last owner
//     has loaded;
//   - or was stored behind the first mark of the last owner, and was committed before that
//     had the space;
//   - or was stored behind a mark that covers it and that stood when the last owner purged
//     markers: a save of its own that arrived a second time.
type stale struct {
	mark *model.Mark // nil if there is none
	at   model.Standing
}

func readStale(mark *model.StateDoc) (s stale, err error) {
	if len(mark.Data) == 0 {
		return s, nil
	}
	s.mark, err = model.DecodeMark(mark.Data)
	s.at = model.Standing{Rev: mark.Rev, Seq: mark.Seq}
	return s, err
}

// has reports whether a document was put back.
func (s *stale) has(d *model.StateDoc) bool {
	if s.mark == nil || d.Data == nil {
		return false
	}
	first := s.mark.First
	if first == 0 {
		first = s.at.Rev
	}
	return behind(d, s.at) || behind(d, s.mark.Before) || d.Rev > first && d.Seq < s.mark.Epoch ||
		slices.ContainsFunc(s.mark.Purged, func(m model.Standing) bool { return behind(d, m) })
}

// behind reports whether a document was stored behind a mark that covers it.
func behind(d *model.StateDoc, m model.Standing) bool {
	return m.Rev > 0 && d.Rev > m.Rev && d.Seq <= m.Seq
}
