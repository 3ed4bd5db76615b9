package sim

import (
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
	"github.com/settlehq/settle/space"
)

// cronTimer is the name of the job's timer.
const cronTimer = "=cron.job"

// agenda holds the delayed events of a space, according to its log.
type agenda struct {
	bySlot map[uint64]*waiting
	timers map[string]uint64 // their slots
	slots  map[uint64][]slotRevision
	// lanes are the events of the lane that have begun to wait, ever.
	lanes map[eventKey]bool
	nth   int // of those that the commit has added
	ever  int
	// asleep is the due time of the event that waited when the space was last unloaded from memory.
	asleep int64
}

type waiting struct {
	model.Waiting
	by    string // the runtime that admitted it
	epoch uint64
	at    int64 // time of its commit
}

type slotRevision struct {
	seq uint64
	w   *waiting // nil if it is empty
}

func newAgenda() agenda {
	return agenda{
		bySlot: map[uint64]*waiting{}, timers: map[string]uint64{},
		slots: map[uint64][]slotRevision{}, lanes: map[eventKey]bool{},
	}
}

// wall returns the wall time.
func (w *world) wall() int64 { return w.story.begin.Add(w.story.now()).UnixMilli() }

// isFar reports whether the event may still wait when the run ends.
func (w *world) isFar(at int64) bool { return at > w.story.begin.Add(far).UnixMilli() }

// add adds an event that begins to wait.
func (f *fold) add(c *model.Commit, w model.Waiting) {
	a := &f.agenda
	if a.bySlot[w.Slot] != nil {
		f.wrong("later", "%s is to wait in slot %d, where %s does", w.ID, w.Slot, a.bySlot[w.Slot].ID)
	}
	if _, set := a.timers[w.Timer]; set && w.Timer != "" {
		f.wrong("later", "timer %s is set twice", w.Timer)
	}
	w.Seq, w.Nth = f.seq, a.nth
	a.nth++
	a.ever++
	in := &waiting{Waiting: w, by: c.Runtime, epoch: c.Epoch, at: f.w.wall()}
	a.bySlot[w.Slot] = in
	if w.Timer != "" {
		a.timers[w.Timer] = w.Slot
	}
	a.slots[w.Slot] = append(a.slots[w.Slot], slotRevision{f.seq, in})
}

// hasLeft reports whether an event has waited, and does no more.
func (a *agenda) hasLeft(id string) bool {
	is := func(r slotRevision) bool { return r.w != nil && r.w.ID == id }
	for slot, list := range a.slots { // any order: whether there is one
		if slices.ContainsFunc(list, is) {
			return a.bySlot[slot] == nil || a.bySlot[slot].ID != id
		}
	}
	return false
}

func (f *fold) free(w *waiting) {
	a := &f.agenda
	delete(a.bySlot, w.Slot)
	if w.Timer != "" {
		delete(a.timers, w.Timer)
	}
	a.slots[w.Slot] = append(a.slots[w.Slot], slotRevision{f.seq, nil})
}

// setAside moves an event from the lane to the agenda: it has had its turn, and waits from now on.
func (f *fold) setAside(c *model.Commit, tx *model.Tx) {
	w := tx.Later
	key := eventKey{f.space, tx.By[len("later "):], w.ID}
	if f.agenda.lanes[key] || f.handled[key] != nil {
		f.wrong("once", "%s begins to wait, and did so before or is handled", w.ID)
	}
	f.agenda.lanes[key] = true
	m := f.takeTurn(w.Stream, w.ID, w.Lane, w.Position)
	if m != nil && (m.NotBefore != w.NotBefore || m.Expires != w.Expires || m.Depth != w.Depth || !model.Equal(parse(m.Payload), w.Payload)) {
		f.wrong("later", "%s waits until %d with %s, and was sent until %d with %s", w.ID, w.NotBefore, w.Payload, m.NotBefore, m.Payload)
	}
	f.add(c, *w)
}

// waited returns the delayed event of a receipt.
func (f *fold) waited(c *model.Commit, stream string, rc *model.Receipt) *model.Event {
	w := f.agenda.bySlot[rc.Slot]
	if w == nil || w.ID != rc.Event || w.Stream != stream {
		f.wrong("later", "%s/%s is handled from slot %d, where it does not wait", stream, rc.Event, rc.Slot)
		return nil
	}
	f.free(w)
	f.handled[eventKey{f.space, stream, rc.Event}].lane = w.Lane
	if rc.Outcome != model.Cancelled {
		f.overtaken(c, w)
	}
	f.w.count("events that waited")
	if w.by != c.Runtime || w.epoch != c.Epoch {
		f.w.count("events that waited, and were handled by another owner")
	}
	ev := w.Event(f.space)
	return &ev
}

// overtaken: of two events that are both due, the one with the earlier time is handled first, and then the one
// that has waited for longer. The other may have been unknown to an owner that neither admitted it nor has
// loaded the space since.
func (f *fold) overtaken(c *model.Commit, w *waiting) {
	for _, o := range f.agenda.bySlot { // any order: whether there is one
		known := o.at < w.NotBefore && (o.epoch == c.Epoch || o.Seq < c.Epoch)
		if known && o.Before(&w.Waiting) {
			f.wrong("order", "%s, due at %d, overtakes %s, due at %d", w.ID, w.NotBefore, o.ID, o.NotBefore)
		}
	}
}

// early: nothing is handled before its time.
func (f *fold) early(ev *model.Event, rc *model.Receipt) {
	ran, told := rc.Result.Get("now").AsInt()
	switch wall := f.w.wall(); {
	case ev.Invalid != "" || rc.Outcome == model.Cancelled:
	case ev.NotBefore > wall:
		f.wrong("early", "%s is in the log at %d, and is due at %d", ev.ID, wall, ev.NotBefore)
	case told && (ran < ev.NotBefore || ran > wall):
		f.wrong("early", "%s was handled at %d, and is due at %d; it is %d", ev.ID, ran, ev.NotBefore, wall)
	}
}

// cancelled removes the events that a transaction cancels.
func (f *fold) cancelled(tx *model.Tx) {
	for _, x := range tx.Cancels {
		w := f.agenda.bySlot[x.Slot]
		if w == nil || w.ID != x.ID || w.Timer == "" {
			f.wrong("later", "transaction %d cancels %s in slot %d, where no such timer waits", tx.N, x.ID, x.Slot)
			continue
		}
		f.free(w)
		if slices.ContainsFunc(tx.Sends, func(s model.Send) bool { return s.Timer == w.Timer && s.Slot == x.Slot }) {
			f.w.count("timers replaced")
		} else {
			f.w.count("timers cancelled")
		}
	}
}

// cancelsOf returns the events that a transaction must cancel, according to the oracle.
func (o *oracle) cancelsOf() (list []model.Cancel) {
	names := slices.Clone(o.cancels)
	for i := range o.sends {
		names = append(names, o.sends[i].Timer)
	}
	for _, name := range names {
		slot, set := o.f.agenda.timers[name]
		if !set || name == "" {
			continue
		}
		c := model.Cancel{ID: o.f.agenda.bySlot[slot].ID, Slot: slot}
		if !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	return list
}

// tick: the next time of the job is set by the transaction that ends the previous run, and no time
// between them is left out.
func (f *fold) tick(c *model.Commit, tx *model.Tx, ev *model.Event, s *model.Send) {
	plan := f.w.schedule(f.space)
	if at := plan.Next(time.UnixMilli(s.NotBefore - 1)); at.UnixMilli() != s.NotBefore {
		f.wrong("cron", "it is set to %d, which is no time of the schedule", s.NotBefore)
	}
	switch {
	case tx.By == "cron":
		f.w.count("jobs that began")
	case ev == nil || ev.Timer != cronTimer:
		f.wrong("cron", "it is set by %s", tx.By)
	case tx.Receipt.Outcome == model.Handled:
		f.w.count("times of jobs")
		missed, _ := tx.Receipt.Result.Get("missed").AsInt()
		if n := plan.between(ev.NotBefore, s.NotBefore); n != missed {
			f.wrong("cron", "%d times lie between %d and %d, and %d were missed", n, ev.NotBefore, s.NotBefore, missed)
		}
		if missed > 0 {
			f.w.count("missed times of jobs")
		}
	}
}

// handed is the event of the job as its handler sees it.
func (o *oracle) handed(ev *model.Event) {
	if ev.Timer != cronTimer {
		return
	}
	missed := int64(0)
	if next := o.f.w.plan.delays; next.catchUp == 0 {
		missed = o.f.w.schedule(o.f.space).between(ev.NotBefore, o.now+1)
	}
	ev.Payload, _ = model.Of(map[string]any{"missed": missed})
}

func (o *oracle) Now() time.Time { return time.UnixMilli(o.now).UTC() }

func (o *oracle) SendAt(space, stream string, at time.Time, payload any, _ ...space.SendOption) {
	s := o.send(space, stream, payload)
	s.Depth = o.timed(at)
	if ms := model.NotBefore(at); space != o.f.space || ms > o.now {
		s.NotBefore = ms
	}
}

func (o *oracle) SetTimer(name, stream string, at time.Time, payload any, _ ...space.SendOption) {
	o.unset(name)
	s := o.send(o.f.space, stream, payload)
	s.Timer, s.NotBefore, s.Depth = name, model.NotBefore(at), o.timed(at)
}

func (o *oracle) CancelTimer(name string) {
	o.unset(name)
	o.cancels = append(o.cancels, name)
}

func (o *oracle) unset(name string) {
	o.sends = slices.DeleteFunc(o.sends, func(s model.Send) bool { return s.Timer == name })
}

func (o *oracle) Timer(name string) (time.Time, bool) {
	for i := range o.sends {
		if o.sends[i].Timer == name && name != "" {
			return time.UnixMilli(o.sends[i].NotBefore).UTC(), true
		}
	}
	slot, set := o.f.agenda.timers[name]
	if !set || slices.Contains(o.cancels, name) {
		return time.Time{}, false
	}
	return time.UnixMilli(o.f.agenda.bySlot[slot].NotBefore).UTC(), true
}

// slotAt returns what a slot held at a log sequence, and the commit that put it there.
func (f *fold) slotAt(slot, seq uint64) (r slotRevision) {
	for _, next := range f.agenda.slots[slot] {
		if next.seq > seq {
			break
		}
		r = next
	}
	return r
}

// savedSlot: the saved state of a delayed event agrees with the log.
func (f *fold) savedSlot(slot uint64, d *model.StateDoc) {
	want := f.slotAt(slot, d.Seq)
	if want.seq != d.Seq || (want.w == nil) != (d.Data == nil) {
		f.wrong("saved", "slot %d is saved as of %d (empty: %v), but was changed at %d", slot, d.Seq, d.Data == nil, want.seq)
		return
	}
	if d.Data == nil {
		return
	}
	got, err := model.DecodeWaiting(d.Data)
	if err != nil || got.ID != want.w.ID || got.NotBefore != want.w.NotBefore || got.Expires != want.w.Expires || got.Depth != want.w.Depth || got.Timer != want.w.Timer || got.Nth != want.w.Nth || !model.Equal(got.Payload, want.w.Payload) {
		f.wrong("saved", "slot %d is saved as %+v at %d (%v), but was %+v", slot, got, d.Seq, err, want.w)
	}
}

// markedSlots: a mark covers only saved delayed events, and the saved time at which the first of them is
// due.
func (f *fold) markedSlots(mark uint64) {
	due := f.savedDue()
	for slot := range f.agenda.slots { // any order: each on its own
		want := f.slotAt(slot, mark)
		stored, there := f.w.server.Saved(f.space, model.StateKeyOfSlot(slot))
		if want.w == nil && !there {
			continue
		}
		if stored.Seq < want.seq {
			f.wrong("saved", "the mark stands at %d, but slot %d is saved as of %d, and was changed at %d", mark, slot, stored.Seq, want.seq)
		}
		if want.w != nil && f.agenda.bySlot[slot] == want.w && (due == 0 || due > want.w.NotBefore) {
			f.wrong("saved", "the mark stands at %d, but the space wants to be woken at %d, and %s is due at %d", mark, due, want.w.ID, want.w.NotBefore)
		}
	}
}

// savedDue returns when a space wants to be woken, 0 if it does not.
func (f *fold) savedDue() int64 {
	d, _ := f.w.server.Saved(f.space, model.DueKey)
	at, err := strconv.ParseInt(string(d.Data), 10, 64)
	if err != nil {
		return 0
	}
	return at
}

// checkAgenda: the delayed events at the end agree with the log, and each would wake its space.
func (f *fold) checkAgenda(r *replica.Replica) {
	n := 0
	r.Later.Each(func(w *model.Waiting) {
		n++
		if want := f.agenda.bySlot[w.Slot]; want == nil || want.ID != w.ID || want.NotBefore != w.NotBefore || want.Timer != w.Timer {
			f.wrong("replica", "%s waits in slot %d as loaded, and %v does in the log", w.ID, w.Slot, want)
		}
	})
	if n != len(f.agenda.bySlot) {
		f.wrong("replica", "%d events wait in the log, and %d as loaded", len(f.agenda.bySlot), n)
	}
	if next, due := r.Later.Next(), f.savedDue(); next > 0 && (due == 0 || due > next) {
		f.wrong("saved", "the first that waits is due at %d, and the space wants to be woken at %d", next, due)
	}
	if n > 0 {
		f.w.count("events that wait for long")
	}
}

// waits returns an overdue event, nil if there is none.
func (f *fold) waits() *waiting {
	for _, w := range f.agenda.bySlot { // any order: whether there is one
		if !f.w.isFar(w.NotBefore) {
			return w
		}
	}
	return nil
}

// waitsFar reports whether an event waits for longer than the run lasts.
func (f *fold) waitsFar(key eventKey) bool {
	for _, w := range f.agenda.bySlot { // any order: whether there is one
		if w.ID == key.id && w.Stream == key.stream {
			return f.w.isFar(w.NotBefore)
		}
	}
	return false
}

// noteAsleep records that a space is unloaded while it has delayed events.
func (w *world) noteAsleep(r slog.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.Attrs(func(a slog.Attr) bool {
		if f := w.folds[a.Value.String()]; a.Key == "space" && f != nil {
			f.agenda.asleep = 0
			for _, x := range f.agenda.bySlot { // any order: the first
				if at := x.NotBefore; f.agenda.asleep == 0 || at < f.agenda.asleep {
					f.agenda.asleep = at
				}
			}
		}
		return true
	})
}

// awakes counts a space that is served again when one of its events is due, and nothing has arrived in
// its lane.
func (f *fold) awakes(c *model.Commit) {
	due, wall := f.agenda.asleep, f.w.wall()
	f.agenda.asleep = 0
	if due != 0 && due <= wall && wall < due+300 && (len(f.lane) == 0 || f.lane[len(f.lane)-1].Seq <= f.cursor.Floor) {
		f.w.count("sleeping spaces that were woken for what waits")
	}
}
