package replica

import (
	"fmt"
	"slices"

	"github.com/settlehq/settle/model"
)

// Later holds the events of a space that wait for their time, by slot (docs/adr/0018). Like a document, a
// slot has the log sequence of the last commit that changed it. Empty slots keep theirs while it may be
// needed, since the saved state of a slot may be ahead of the mark.
type Later struct {
	slots map[uint64]slot
	n     int
	// dues orders the waiting events; entries of events that no longer wait are dropped when they are first.
	dues  Queue
	dirty map[uint64]bool
}

type slot struct {
	w   *model.Waiting // nil if no event waits in the slot
	seq uint64
}

func newLater() Later { return Later{slots: map[uint64]slot{}, dirty: map[uint64]bool{}} }

// Len returns the number of waiting events.
func (l *Later) Len() int { return l.n }

// At returns the event that waits in a slot, or nil. It must not be modified.
func (l *Later) At(n uint64) *model.Waiting { return l.slots[n].w }

// Each calls f for every waiting event, in no particular order.
func (l *Later) Each(f func(*model.Waiting)) {
	for _, s := range l.slots { // any order: the caller expects none
		if s.w != nil {
			f(s.w)
		}
	}
}

// Next returns the time of the next event, 0 if none waits.
func (l *Later) Next() int64 {
	if w := l.dues.First(func(w *model.Waiting) bool { return l.slots[w.Slot].w == w }); w != nil {
		return w.NotBefore
	}
	return 0
}

// take applies the changes by a transaction of the commit at seq. n counts the events that the commit has
// added so far.
func (l *Later) take(seq uint64, tx *model.Tx, space string, n *int) {
	if rc := tx.Receipt; rc != nil && rc.Slot > 0 {
		l.clear(seq, rc.Slot, rc.Event)
	}
	for i := range tx.Cancels {
		l.clear(seq, tx.Cancels[i].Slot, tx.Cancels[i].ID)
	}
	if tx.Later != nil {
		l.add(seq, *tx.Later, n)
	}
	for i := range tx.Sends {
		if s := &tx.Sends[i]; s.To == space && s.Slot > 0 {
			l.add(seq, s.Waits(), n)
		}
	}
}

// known reports whether the loaded state of a slot includes the commit at seq.
func (l *Later) known(seq, n uint64) bool {
	s := l.slots[n]
	return s.seq > seq || s.seq == seq && !l.dirty[n]
}

func (l *Later) clear(seq, n uint64, id string) {
	if s := l.slots[n]; l.known(seq, n) || s.w == nil || s.w.ID != id {
		return
	}
	l.set(n, slot{seq: seq})
	l.dirty[n] = true
}

func (l *Later) add(seq uint64, w model.Waiting, n *int) {
	w.Seq, w.Nth = seq, *n
	*n++
	if !l.known(seq, w.Slot) {
		l.set(w.Slot, slot{w: &w, seq: seq})
		l.dirty[w.Slot] = true
	}
}

func (l *Later) set(n uint64, s slot) {
	if l.slots[n].w != nil {
		l.n--
	}
	l.slots[n] = s
	if s.w != nil {
		l.n++
		l.dues.Add(s.w)
		l.tidy()
	}
}

// tidy removes entries of events that no longer wait when they are in the majority.
func (l *Later) tidy() {
	if l.dues.Len() < 2*l.n+64 {
		return
	}
	l.dues = Queue{}
	l.Each(l.dues.Add)
}

// load reads the saved state of the waiting events.
func (l *Later) load(items []model.StateDoc) error {
	for i := range items {
		n, ok := model.SlotOfStateKey(items[i].Doc)
		if !ok {
			return fmt.Errorf("item %s is not a waiting event", items[i].Doc)
		}
		s := slot{seq: items[i].Seq}
		if items[i].Data != nil {
			w, err := model.DecodeWaiting(items[i].Data)
			if err != nil {
				return fmt.Errorf("slot %d: %w", n, err)
			}
			w.Slot, w.Seq = n, items[i].Seq
			s.w = w
		}
		l.set(n, s)
	}
	return nil
}

// item returns a slot in its saved form.
func (l *Later) item(n uint64) (model.StateDoc, error) {
	s := l.slots[n]
	d := model.StateDoc{Doc: model.StateKeyOfSlot(n), Seq: s.seq}
	if s.w == nil {
		return d, nil
	}
	var err error
	d.Data, err = s.w.Encode()
	return d, err
}

// clone returns an independent copy; the immutable events are shared.
func (l *Later) clone() Later {
	c := newLater()
	for n, s := range l.slots { // any order: a copy
		c.slots[n] = s
	}
	for n := range l.dirty { // any order: a copy
		c.dirty[n] = true
	}
	c.n = l.n
	c.dues.h = slices.Clone(l.dues.h)
	return c
}
