package replica

import (
	"fmt"
	"slices"

	"github.com/settlehq/settle/model"
)

// Later are the events of a space that wait for their time, by slot (docs/adr/0018). A slot
// has a log sequence like a document, that of the last commit that changed it, empty ones
// too as long as it may be needed: what is saved of it may be ahead of the mark.
type Later struct {
	slots map[uint64]slot
	n     int
	// dues orders those that wait; one that is gone is found out when it is met.
	dues  Queue
	dirty map[uint64]bool
}

type slot struct {
	w   *model.Waiting // nil if none waits there
	seq uint64
}

func newLater() Later { return Later{slots: map[uint64]slot{}, dirty: map[uint64]bool{}} }

// Len is how many wait.
func (l *Later) Len() int { return l.n }

// At is the event that waits in a slot, or nil. It must not be changed.
func (l *Later) At(n uint64) *model.Waiting { return l.slots[n].w }

// Each calls f for every event that waits, in no order.
func (l *Later) Each(f func(*model.Waiting)) {
	for _, s := range l.slots { // any order: as it says
		if s.w != nil {
			f(s.w)
		}
	}
}

// Next is the time of the first that waits, 0 if none does.
func (l *Later) Next() int64 {
	if w := l.dues.First(func(w *model.Waiting) bool { return l.slots[w.Slot].w == w }); w != nil {
		return w.NotBefore
	}
	return 0
}

// take takes in what a transaction of the commit at seq has changed. n counts those that
// the commit has added before.
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

// known reports whether what was loaded of a slot has seen the commit at seq already.
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

// tidy forgets those that are gone when they are most of what is kept.
func (l *Later) tidy() {
	if l.dues.Len() < 2*l.n+64 {
		return
	}
	l.dues = Queue{}
	l.Each(l.dues.Add)
}

// load takes in what is saved of the events that wait.
func (l *Later) load(items []model.StateDoc) error {
	for i := range items {
		n, ok := model.SlotOfStateKey(items[i].Doc)
		if !ok {
			return fmt.Errorf("item %s is none of an event that waits", items[i].Doc)
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

// item is a slot as it is saved.
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

// clone is an independent copy; the events are shared, being immutable.
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
