package dev

import (
	"context"
	"time"

	"github.com/settlehq/settle/internal/simkit"
	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program/star"
	"github.com/settlehq/settle/space"
)

// A start waits for its rehearsals, so they are bounded whatever the program does: rehearsalTime,
// the default of Config.Rehearsal, bounds all events together, and rehearsalChain how deep a chain
// of events may be.
const (
	rehearsalTime  = 300 * time.Millisecond
	rehearsalChain = 10
)

// suggestion is an event to try, and the documents that it changes.
type suggestion struct {
	star.Sample
	changes []string
}

// suggest returns an event to try with the first program, nil if none is known. The sample has its
// own.
func (d *dev) suggest(ctx context.Context) *suggestion {
	if d.golang != nil {
		return d.golang.event()
	}
	h := d.programs[0]
	if d.isSample() || h.program == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, d.cfg.Rehearsal)
	defer cancel()
	return suggest(ctx, h.version.Source(), h.name)
}

// suggest returns an event that a new space accepts, nil if none can be constructed or none was
// found before ctx ended: the first of the file that changes a document, or else the first that is
// handled. Candidates are tried in memory.
func suggest(ctx context.Context, source star.Source, space string) (best *suggestion) {
	p, err := star.Compile(source, star.Options{Context: ctx})
	if err != nil {
		return nil
	}
	for _, s := range p.Samples() {
		changes, handled := rehearse(p, space, s)
		if handled && (len(changes) > 0 || best == nil) {
			best = &suggestion{s, changes}
		}
		if len(changes) > 0 || ctx.Err() != nil {
			break
		}
	}
	return best
}

// rehearse reports whether a new space handles an event, and which documents that changes.
func rehearse(p *star.Program, name string, s star.Sample) (changes []string, handled bool) {
	payload := model.Value{}
	if s.Payload != "" {
		var err error
		if payload, err = model.ParseValue([]byte(s.Payload)); err != nil {
			return nil, false
		}
	}
	o := simkit.Options{Start: time.Now(), Lenient: true, Space: space.Config{Limits: ledger.Limits{MaxChain: rehearsalChain}}}
	w, err := simkit.New(simkit.Always(p.Space()), o).Space(name)
	if err != nil {
		return nil, false
	}
	rc, ended, _ := w.Send(s.Stream, "try", payload, time.Time{}) // its chain of events may not end
	if !ended || rc.Outcome != model.Handled {
		return nil, false
	}
	return w.Docs(), true
}
