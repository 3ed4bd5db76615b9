package replica

import (
	"fmt"
	"slices"

	"github.com/settlehq/settle/model"
)

// stale identifies documents that were restored by mistake. The marker of a deleted document is purged after
// a while. If an owner that was deposed long ago still has an old state of the document to save, it then
// finds nothing newer in its place, and stores it.
//
// Everything that a mark covers was stored before it, and an owner stores everything that was committed
// before its epoch before its first mark. So a document was restored by mistake if it was
//
//   - stored after a mark that covers it: the last one, or the one that the last owner loaded;
//   - or stored after the first mark of the last owner, but committed before that owner's epoch;
//   - or stored after a mark that covers it and that was in the bucket when the last owner purged
//     markers: a save of the owner's own that arrived a second time;
//   - or stored before the floor: a server that was killed has restored it from its files (see Floor).
type stale struct {
	mark *model.Mark // nil if there is none
	at   model.MarkPosition
}

func readStale(mark *model.StateDoc) (s stale, err error) {
	if len(mark.Data) == 0 {
		return s, nil
	}
	s.mark, err = model.DecodeMark(mark.Data)
	s.at = model.MarkPosition{Rev: mark.Rev, Seq: mark.Seq}
	if err == nil && s.mark.Floor > mark.Rev {
		return s, fmt.Errorf("the checkpoint mark at revision %d has the floor %d, which is after it: the bucket was copied without its sequences; restore it with them", mark.Rev, s.mark.Floor)
	}
	return s, err
}

// has reports whether a document was restored by mistake.
func (s *stale) has(d *model.StateDoc) bool {
	if s.mark == nil || d.Data == nil {
		return false
	}
	first := s.mark.First
	if first == 0 {
		first = s.at.Rev
	}
	return d.Rev < s.mark.Floor || behind(d, s.at) || behind(d, s.mark.Before) || d.First() > first && d.Changed() < s.mark.Epoch ||
		slices.ContainsFunc(s.mark.Purged, func(m model.MarkPosition) bool { return behind(d, m) })
}

// behind reports whether a document was stored after a mark that covers it. One that was stored again without a change counts as
// the one that it replaced.
func behind(d *model.StateDoc, m model.MarkPosition) bool {
	return m.Rev > 0 && d.First() > m.Rev && d.Changed() <= m.Seq
}
