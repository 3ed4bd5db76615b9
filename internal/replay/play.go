package replay

import (
	"fmt"
	"time"

	"github.com/settlehq/settle/internal/simkit"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// maxDifferences bounds the reported differences.
const maxDifferences = 20

// Play repeats the recording in a world and returns the differences: outcomes of events, and
// documents at the end. The world must have started at r.Start or earlier.
func (r *Recording) Play(w *simkit.World) (differences []string, err error) {
	if err := w.AdvanceTo(r.Start); err != nil {
		return nil, err
	}
	s, err := w.Space(r.Space)
	if err != nil {
		return nil, err
	}
	if err := r.begin(s); err != nil {
		return nil, err
	}
	for i := range r.Steps {
		if err := r.Steps[i].play(w, s); err != nil {
			return nil, err
		}
	}
	if w.Now().Before(r.End) {
		if err := w.AdvanceTo(r.End); err != nil {
			return nil, err
		}
	}
	return r.settle(w, s)
}

// lateness is how late an event that waits for a time may be: the handler that set the time saw an
// earlier clock than the log, which is what the recording has.
const lateness = 100 * time.Millisecond

// settle compares, and if there are differences allows for lateness. It reports the differences
// from before that.
func (r *Recording) settle(w *simkit.World, s *simkit.Space) ([]string, error) {
	inTime := r.compare(s)
	different := inTime
	for end := w.Now().Add(lateness); len(different) > 0 && w.Now().Before(end); different = r.compare(s) {
		if err := w.AdvanceTo(w.Now().Add(time.Millisecond)); err != nil {
			return nil, err
		}
	}
	if len(different) == 0 {
		return nil, nil
	}
	return inTime, nil
}

// begin writes the documents from before the recording.
func (r *Recording) begin(s *simkit.Space) error {
	if len(r.Before) == 0 {
		return nil
	}
	return s.Write(func(tx *space.Tx) error {
		for _, d := range r.Before {
			tx.Set(d.Name, d.Value)
		}
		return nil
	})
}

func (p *RecordedStep) play(w *simkit.World, s *simkit.Space) error {
	if p.At.After(w.Now()) {
		if err := w.AdvanceTo(p.At); err != nil {
			return err
		}
	}
	if p.Stream == "" {
		return p.write(s)
	}
	return s.Deliver(model.Event{Stream: p.Stream, ID: p.Event, Payload: p.Payload, NotBefore: p.NotBefore, Invalid: p.Invalid})
}

// write sets the documents as the writes leave them. They are those of the log, which may have parts that no program names: of a link, or the
// version of a document.
func (p *RecordedStep) write(s *simkit.Space) error {
	docs := map[string]model.Value{}
	var names []string
	for i := range p.Writes {
		wr := &p.Writes[i]
		v, begun := docs[wr.Doc]
		if !begun {
			v, names = s.Value(wr.Doc), append(names, wr.Doc)
		}
		v, err := wr.Apply(v)
		if err != nil {
			return fmt.Errorf("write %s%s: %w", wr.Doc, wr.Path, err)
		}
		docs[wr.Doc] = v
	}
	return s.Write(func(tx *space.Tx) error {
		for _, name := range names {
			tx.Set(name, docs[name])
		}
		return nil
	})
}

// compare returns the differences.
func (r *Recording) compare(s *simkit.Space) (all []string) {
	for i := range r.Steps {
		p := &r.Steps[i]
		if p.Stream == "" {
			continue
		}
		rc, _ := s.Receipt(p.Stream, p.Event)
		name := fmt.Sprintf("event %s of stream %s, at %s", p.Event, p.Stream, p.At.UTC().Format(time.RFC3339Nano))
		if d := p.difference(&rc); d != "" {
			all = append(all, name+": "+d)
		}
	}
	for _, d := range r.After {
		if v := s.Value(d.Name); !model.Equal(timeless(d.Name, v), timeless(d.Name, d.Value)) {
			all = append(all, fmt.Sprintf("document %s is %s here, and was %s", d.Name, v, d.Value))
		}
	}
	if more := len(all) - maxDifferences; more > 0 {
		all = append(all[:maxDifferences], fmt.Sprintf("and %d more", more))
	}
	return all
}

// difference returns how the receipt differs from that of the recording, "" if it does not. Texts of errors are not compared.
func (p *RecordedStep) difference(rc *model.Receipt) string {
	switch {
	case rc.Outcome != p.Outcome:
		return fmt.Sprintf("%s here, and was %s", outcomeText(rc.Outcome, rc.Error), outcomeText(p.Outcome, p.Error))
	case rc.Code != p.Code:
		return fmt.Sprintf("rejected with the code %q here, and with %q before", rc.Code, p.Code)
	case !model.Equal(rc.Result, p.Result):
		return fmt.Sprintf("the result is %s here, and was %s", rc.Result, p.Result)
	}
	return ""
}

// timeless returns a document without the times at which tasks have begun and ended: a recording has those of
// the log, which are milliseconds after those of the handlers.
func timeless(doc string, v model.Value) model.Value {
	if model.IsTaskDoc(doc) {
		if without, err := v.Delete(model.Path{"since"}); err == nil {
			v = without
		}
	}
	for key, task := range v.Get("tasks").All() {
		if task.Get("state").IsAbsent() || task.Get("at").IsAbsent() {
			continue
		}
		if without, err := v.Delete(append(space.PathOfTask(key), "at")); err == nil {
			v = without
		}
	}
	return v
}

func outcomeText(o model.Outcome, why string) string {
	switch {
	case o == "":
		return "not ended"
	case why == "":
		return string(o)
	}
	return string(o) + " (" + why + ")"
}
