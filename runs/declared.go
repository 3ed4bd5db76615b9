package runs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/schedule"
	"github.com/settlehq/settle/space"
)

// declareJob is the job that has a space adopt the schedules of its program, once for each version of them.
const declareJob = "workflow-schedules"

// maxDeclared bounds the arguments of the schedules that a program declares, which a space adopts in one transaction.
const maxDeclared = 64 << 10

// declaration is a schedule that a program declares.
type declaration struct {
	schedule.Definition
	args    model.Value
	version string
}

// Declare adds a schedule that each space of the program has. Call it after Add, with arguments that are an object or
// absent.
func (s *Set) Declare(name string, d schedule.Definition, args model.Value) error {
	err := d.Check()
	if err == nil {
		args, err = checkSchedule(name, args)
	}
	var v model.Value
	if err == nil {
		v, err = d.Value()
	}
	switch {
	case err != nil:
		return fmt.Errorf("schedule %s: %w", name, err)
	case s.declared[name] != nil:
		return fmt.Errorf("there are two schedules %s", name)
	case len(s.declared) == maxSchedules:
		return fmt.Errorf("there are more than %d schedules", maxSchedules)
	}
	sum := sha256.Sum256([]byte(v.String() + args.String()))
	s.declared[name] = &declaration{d, args, hex.EncodeToString(sum[:8])}
	return nil
}

// Lacks reports whether the program has no workflow of a name.
func (s *Set) Lacks(workflow string) bool { return s.byName[workflow] == nil }

// registerDeclared registers the job that has spaces adopt the declared schedules.
func (s *Set) registerDeclared(p *space.Program) error {
	if len(s.declared) == 0 {
		return nil
	}
	spec, size := "", 0
	for _, name := range slices.Sorted(maps.Keys(s.declared)) {
		d := s.declared[name]
		w := s.byName[d.Workflow]
		if w == nil {
			return fmt.Errorf("schedule %s: %s", name, s.lacks(d.Workflow))
		}
		if err := w.checkScheduled(d.Definition, d.args); err != nil {
			return fmt.Errorf("schedule %s: %w", name, err)
		}
		spec += name + " " + d.version + "\n"
		size += len(d.args.String())
	}
	if size > maxDeclared {
		return fmt.Errorf("the arguments of the schedules have %d bytes; at most %d are possible: have actions fetch what is large", size, maxDeclared)
	}
	sum := sha256.Sum256([]byte(spec))
	return p.Cron(space.CronSpec{Name: declareJob, Stream: StreamScheduleTimer, Once: true, Spec: hex.EncodeToString(sum[:8])})
}

// declare has the space adopt the schedules that its program declares: new ones and those whose declaration has changed
// since. It removes those that were declared before, and sets the timers of all others, which a program without workflows may
// have lost.
func (h *host) declare() error {
	for name, entry := range h.tx.Peek(Schedules).All() {
		d := h.set.declared[name]
		version, _ := entry.Get("declared").AsString()
		switch {
		case d == nil && version != "":
			h.forget(name)
		case d == nil || d.version == version:
			x, err := h.schedule(name)
			if err == nil {
				err = h.keep(x)
			}
			if err != nil {
				return err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h.set.declared)) {
		if err := h.adopt(name, h.set.declared[name]); err != nil {
			return err
		}
	}
	return h.tx.Err()
}

// adopt creates a declared schedule, or replaces its definition if the declaration has changed.
func (h *host) adopt(name string, d *declaration) error {
	x, err := h.schedule(name)
	if err != nil || x != nil && x.Declared == d.version {
		return err
	}
	if x, err = h.define(x, name, d.Definition, d.args); err != nil {
		return err
	}
	x.Declared, x.Changed = d.version, false
	return h.keep(x)
}
