package history

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/settlehq/settle/lineage"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// Dead is a dead letter, with what was done about it.
type Dead struct {
	model.DeadLetter
	// Redriven is the event that was sent again for it, nil if none was.
	Redriven *Redriven `json:"redriven,omitempty"`
	// Dismissed is set if the letter was dismissed.
	Dismissed *Dismissal `json:"dismissed,omitempty"`
}

// Dismissal records when and why a dead letter was dismissed.
type Dismissal struct {
	Reason string `json:"reason,omitempty"`
}

// Redriven is an event that was sent again, and its state.
type Redriven struct {
	Event string        `json:"event"`
	State lineage.State `json:"state"`
	Error string        `json:"error,omitempty"`
}

// DeadLetters returns up to limit dead letters of a space (of all spaces, if space is "") after a sequence,
// oldest first, with what was done about them. Fewer than limit means that there are no more. It may miss the
// newest.
func DeadLetters(ctx context.Context, bus port.Client, space string, after uint64, limit int) ([]Dead, error) {
	var list []Dead
	for len(list) < limit {
		want := limit - len(list)
		letters, err := bus.ReadDead(ctx, space, after, want)
		if err != nil {
			return nil, err
		}
		page := make([]Dead, 0, len(letters))
		for i := range letters {
			after = letters[i].Seq
			if !letters[i].IsNote() {
				page = append(page, Dead{DeadLetter: letters[i]})
			}
		}
		if err := addResolutions(ctx, bus, page, nil); err != nil {
			return nil, err
		}
		list = append(list, page...)
		if len(letters) < want {
			break
		}
	}
	return list, nil
}

// EachDead calls f with each dead letter of a space, or of all spaces if space is "", oldest first, as of the
// start of the iteration, until f fails.
func EachDead(ctx context.Context, bus port.Client, space string, f func(Dead) error) error {
	index, err := readDeadIndex(ctx, bus, space)
	if err != nil {
		return err
	}
	for after := uint64(0); ; {
		letters, err := bus.ReadDead(ctx, space, after, deadPageSize)
		if err != nil {
			return err
		}
		page := make([]Dead, 0, len(letters))
		for i := range letters {
			after = letters[i].Seq
			if !letters[i].IsNote() {
				page = append(page, Dead{DeadLetter: letters[i]})
			}
		}
		if err := addResolutions(ctx, bus, page, index); err != nil {
			return err
		}
		for i := range page {
			if err := f(page[i]); err != nil {
				return err
			}
		}
		if len(letters) < deadPageSize {
			return nil
		}
	}
}

// addResolutions adds to letters what was done about them. It requests the notes of the page together, only
// those in the index if there is one, and the state of each redriven event.
func addResolutions(ctx context.Context, bus port.Client, page []Dead, index model.DeadIndex) error {
	var asked []model.DeadName
	for i := range page {
		name := page[i].Name()
		for _, n := range []model.DeadName{name.RedrivenNote(), name.Note(model.Dismissed)} {
			if n.Check() == nil && (index == nil || index[n]) { // any NATS client can put such an event into a lane, but not a note about it
				asked = append(asked, n)
			}
		}
	}
	found, err := bus.GetDead(ctx, asked)
	if err != nil {
		return err
	}
	notes := make(map[model.DeadName]*model.DeadLetter, len(found))
	for i := range found {
		notes[found[i].Name()] = &found[i]
	}
	for i := range page {
		d := &page[i]
		if n := notes[d.Name().Note(model.Dismissed)]; n != nil {
			d.Dismissed = &Dismissal{Reason: n.Error}
		}
		if notes[d.Name().RedrivenNote()] == nil {
			continue
		}
		if d.Redriven, err = redriven(ctx, bus, &d.DeadLetter); err != nil {
			return err
		}
	}
	return nil
}

// redriven returns the state of the event that was sent again for a letter.
func redriven(ctx context.Context, bus port.Client, d *model.DeadLetter) (*Redriven, error) {
	w := &walk{bus: bus}
	b := &branch{TreeNode: &TreeNode{EventRef: EventRef{d.Space, d.Stream, model.RedriveID(d.Event)}}}
	if err := b.unread(w.lookInLane(ctx, b, nil)); err != nil {
		return nil, err
	}
	if b.State == lineage.Parked { // it is in no lane, since it was sent long ago
		b.State = lineage.Forgotten
	}
	return &Redriven{b.Event, b.State, b.Error}, nil
}

// findNote returns the note of a kind about an event, nil if there is none.
func findNote(ctx context.Context, bus port.Client, r EventRef, kind model.Outcome) (*model.DeadLetter, error) {
	id := model.NoteOf(r.Event, kind)
	if model.CheckAnyEventID(id) != nil {
		return nil, nil // any NATS client can put such an event into a lane, but not a note about it
	}
	notes, err := bus.FindDead(ctx, r.Space, id)
	if at := slices.IndexFunc(notes, func(d model.DeadLetter) bool { return d.Stream == r.Stream }); at >= 0 {
		return &notes[at], err
	}
	return nil, err
}

// note records what was done about an event. Only the first note of a kind is kept.
func note(ctx context.Context, bus port.Client, r EventRef, kind model.Outcome, why string) error {
	return bus.StoreDead(ctx, &model.DeadLetter{
		Version: model.DeadVersion, Space: r.Space, Stream: r.Stream, Event: model.NoteOf(r.Event, kind), Outcome: kind, Error: why,
	})
}

// Payload returns the payload of an event: from the lane, or from the commit that sent it if the event never
// was in the lane or is a tombstone there.
func Payload(ctx context.Context, bus port.Client, r EventRef) ([]byte, error) {
	m, there, err := bus.FindEvent(ctx, r.Space, r.Stream, r.Event)
	if err != nil || there && m.Invalid == "" {
		return m.Payload, err
	}
	sent, err := FindOrigin(ctx, bus, r.Event)
	switch {
	case err != nil:
		return nil, err
	case sent == nil:
		return nil, fmt.Errorf("payload of event %s to %s/%s: %w", r.Event, r.Space, r.Stream, ErrGone)
	case sent.Send.Payload.IsAbsent():
		return nil, nil
	}
	return sent.Send.Payload.AppendJSON(nil), nil
}

// ErrGone reports that a payload is no longer in any lane or log.
var ErrGone = errors.New("it is no longer in the lane, and in no log")

// IsGone reports whether Payload can never find the payload.
func IsGone(err error) bool {
	return errors.Is(err, ErrGone) || errors.Is(err, ErrForgotten) || errors.Is(err, ErrNeverSent)
}

// NoLetterError reports that an event has no dead letter.
type NoLetterError struct{ EventRef }

func (e *NoLetterError) Error() string {
	return fmt.Sprintf("there is no dead letter about event %s of space %s; `settle dead %s` lists the existing ones, `settle tree %s --space %s` shows the state of the event",
		e.Event, e.Space, e.Space, e.Event, e.Space)
}

// Redrive sends an event that failed or was refused again, under model.RedriveID. Redriving it twice is one
// event, which is reported as a duplicate. stream may be empty if only one event of the space has that id.
func Redrive(ctx context.Context, bus port.Client, space, stream, id string) (EventRef, model.SendResult, error) {
	d, err := findLetter(ctx, bus, EventRef{space, stream, id})
	if err != nil {
		return EventRef{}, model.SendResult{}, err
	}
	r := EventRef{d.Space, d.Stream, model.RedriveID(d.Event)}
	m := model.Message{Space: r.Space, Stream: r.Stream, ID: r.Event, Payload: d.Bytes(), Trace: d.Trace}
	if d.Lost != "" {
		if m.Payload, err = Payload(ctx, bus, EventRef{d.Space, d.Stream, d.Event}); err != nil {
			return r, model.SendResult{}, err
		}
	}
	result, err := sendOnce(ctx, bus, r, m)
	if err != nil {
		return r, result, fmt.Errorf("redrive event %s of %s/%s: %w", d.Event, d.Space, d.Stream, err)
	}
	return r, result, nil
}

// Dismiss records that a dead letter needs no further action, and why; again reports that it was dismissed
// before, in which case the first reason is kept. The letter stays, and can be redriven. stream may be empty
// as for Redrive.
func Dismiss(ctx context.Context, bus port.Client, space, stream, id, reason string) (of EventRef, again bool, err error) {
	if len(reason) > model.MaxReasonLen {
		return EventRef{}, false, fmt.Errorf("dismiss event %s: the reason has %d bytes, and at most %d are kept; shorten it", id, len(reason), model.MaxReasonLen)
	}
	d, err := findLetter(ctx, bus, EventRef{space, stream, id})
	if err != nil {
		return EventRef{}, false, err
	}
	of = EventRef{d.Space, d.Stream, d.Event}
	if before, err := findNote(ctx, bus, of, model.Dismissed); err != nil || before != nil {
		return of, before != nil, err
	}
	return of, false, note(ctx, bus, of, model.Dismissed, reason)
}

// SentAgain returns the name under which the event of a dead letter was sent again; false if it was not.
func SentAgain(ctx context.Context, bus port.Client, of EventRef) (again EventRef, sent bool, err error) {
	again = EventRef{of.Space, of.Stream, model.RedriveID(of.Event)}
	n, err := findNote(ctx, bus, again, model.Redriven)
	return again, n != nil, err
}

// sendOnce sends an event again unless that was done before. The lane refuses a second one; when the lane has
// forgotten the first, the note that is written afterwards shows it.
func sendOnce(ctx context.Context, bus port.Client, r EventRef, m model.Message) (model.SendResult, error) {
	if done, err := findNote(ctx, bus, r, model.Redriven); err != nil || done != nil {
		return model.SendResult{Duplicate: done != nil}, err
	}
	result, err := send(ctx, bus, m)
	if err != nil {
		return result, err
	}
	return result, note(ctx, bus, r, model.Redriven, "")
}

func findLetter(ctx context.Context, bus port.Client, r EventRef) (*model.DeadLetter, error) {
	letters, err := bus.FindDead(ctx, r.Space, r.Event)
	if err != nil {
		return nil, err
	}
	var found []*model.DeadLetter
	several := &AmbiguousError{Event: r.Event}
	for i := range letters {
		d := &letters[i]
		if d.IsNote() {
			continue
		}
		if r.Stream == "" || d.Stream == r.Stream {
			found = append(found, d)
			several.Found = append(several.Found, EventRef{d.Space, d.Stream, d.Event})
		}
	}
	switch len(found) {
	case 0:
		return nil, &NoLetterError{r}
	case 1:
		return found[0], nil
	}
	return nil, several
}

// sendAnswer is the result of a send.
type sendAnswer struct {
	r   model.SendResult
	err error
}

// sending sends a message, and delivers the result.
func sending(bus port.Client, m model.Message) <-chan sendAnswer {
	done := make(chan sendAnswer, 1)
	bus.Send(m, func(r model.SendResult, err error) { done <- sendAnswer{r, err} })
	return done
}

func send(ctx context.Context, bus port.Client, m model.Message) (model.SendResult, error) {
	select {
	case a := <-sending(bus, m):
		return a.r, a.err
	case <-ctx.Done():
		return model.SendResult{}, ctx.Err()
	}
}
