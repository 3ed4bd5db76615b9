package dev

import (
	"time"

	"github.com/settlehq/settle/internal/kit"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program/star"
)

// suggestion is an event to try, and the documents that it changes.
type suggestion struct {
	star.Sample
	changes []string
}

// suggest is an event that a space takes in which nothing has happened yet, and false if none that
// can be made up is: the first of the file that changes a document, or else the first that is
// handled. They are tried in memory.
func suggest(p *star.Program, space string) (best suggestion, found bool) {
	for _, s := range p.Samples() {
		changes, handled := rehearse(p, space, s)
		if handled && (len(changes) > 0 || !found) {
			best, found = suggestion{s, changes}, true
		}
		if len(changes) > 0 {
			break
		}
	}
	return best, found
}

// rehearse reports whether an event is handled by a new space, and which documents that changes.
func rehearse(p *star.Program, space string, s star.Sample) (changes []string, handled bool) {
	payload := model.Value{}
	if s.Payload != "" {
		var err error
		if payload, err = model.ParseValue([]byte(s.Payload)); err != nil {
			return nil, false
		}
	}
	w, err := kit.New(kit.Always(p.Space()), kit.Options{Start: time.Now(), Lenient: true}).Space(space)
	if err != nil {
		return nil, false
	}
	rc, ended, err := w.Send(s.Stream, "try", payload, time.Time{})
	if err != nil || !ended || rc.Outcome != model.Handled {
		return nil, false
	}
	return w.Docs(), true
}
