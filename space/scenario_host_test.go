package space

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/settlehq/settle/model"
)

// Commands for what an application that hosts a space does: adding and removing nodes, writes of its own,
// gates, and queries.

func (s *stage) cmdAdd(d *datadriven.TestData) error {
	a, err := s.one(d)
	if err != nil {
		return err
	}
	sc := a.script(a.cfg.Space)
	for _, line := range joinIndented(d.Input) {
		spec, err := sc.node(line)
		if err == nil {
			err = a.core.Register(spec)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) cmdRemove(d *datadriven.TestData) error {
	a, err := s.one(d)
	if err == nil && !a.core.Remove(arg(d, 1)) {
		err = fmt.Errorf("there is no node %q", arg(d, 1))
	}
	return err
}

// cmdWrite makes a transaction of the application.
func (s *stage) cmdWrite(d *datadriven.TestData) error {
	a, err := s.one(d)
	if err != nil {
		return err
	}
	sc := a.script(a.cfg.Space)
	statements, err := sc.statements(strings.Join(joinIndented(d.Input), ";"))
	if err != nil {
		return err
	}
	n, err := a.core.Transact("application", func(tx *Tx) error {
		tx.Group(option(d, "group"))
		v := sc.env(tx, nil)
		_, err := expr(func(*env) model.Value {
			for _, st := range statements {
				st(tx, v)
			}
			return model.Value{}
		}).eval(v)
		return err
	})
	a.flush()
	if err == nil {
		a.tell(a, 1, "tx %d of the application", n)
	}
	return err
}

// cmdGate sets the gates of a node, and prints them.
func (s *stage) cmdGate(d *datadriven.TestData) error {
	a, err := s.one(d)
	if err != nil {
		return err
	}
	id := arg(d, 1)
	for name, set := range map[string]func(string, time.Duration) error{"debounce": a.core.SetDebounce, "max-wait": a.core.SetMaxWait, "throttle": a.core.SetThrottle} {
		if v := option(d, name); v != "" {
			dur, err := time.ParseDuration(v)
			if err == nil {
				err = set(id, dur)
			}
			if err != nil {
				return err
			}
		}
	}
	if d.HasArg("no-auto-debounce") {
		if err := a.core.SetNoAutoDebounce(id, true); err != nil {
			return err
		}
	}
	g, ok := a.core.Gate(id)
	if !ok {
		return fmt.Errorf("there is no node %q", id)
	}
	longest := ""
	if g.MaxWait != 0 {
		longest = fmt.Sprintf(", max-wait %s", g.MaxWait)
	}
	a.tell(a, 1, "%s: debounce %s%s, throttle %s", id, g.Debounce, longest, g.Throttle)
	return nil
}

// cmdTook reports the duration of runs of a node.
func (s *stage) cmdTook(d *datadriven.TestData) error {
	a, err := s.one(d)
	if err != nil {
		return err
	}
	dur, err := time.ParseDuration(arg(d, 2))
	if err != nil {
		return err
	}
	times := 1
	if v := option(d, "times"); v != "" {
		if times, err = strconv.Atoi(v); err != nil {
			return err
		}
	}
	for range times {
		a.core.Measured(arg(d, 1), dur)
	}
	return nil
}

// cmdIdle prints whether runtimes are idle.
func (s *stage) cmdIdle(d *datadriven.TestData) error {
	who, err := s.namedActors(d)
	for _, a := range who {
		a.tell(a, 1, "idle %v, durable %v", a.core.Idle(), a.core.Durable())
	}
	return err
}

// cmdBegin and cmdEnd begin and end work outside the core.
func (s *stage) cmdBegin(d *datadriven.TestData) error {
	a, err := s.one(d)
	if err == nil {
		if a.background == nil {
			a.background = map[string]func(){}
		}
		a.background[arg(d, 1)] = a.core.Begin()
	}
	return err
}

func (s *stage) cmdEnd(d *datadriven.TestData) error {
	a, err := s.one(d)
	if err != nil {
		return err
	}
	end := a.background[arg(d, 1)]
	if end == nil {
		return fmt.Errorf("there is no work named %q", arg(d, 1))
	}
	end()
	return nil
}

func (s *stage) cmdClose(d *datadriven.TestData) error {
	a, err := s.one(d)
	if err == nil {
		a.core.Close()
		a.settle()
	}
	return err
}

// cmdErrors prints what was reported to OnError since the last call.
func (s *stage) cmdErrors(d *datadriven.TestData) error {
	who, err := s.namedActors(d)
	for _, a := range who {
		for _, line := range a.errors {
			a.tell(a, 1, "%s", line)
		}
		a.errors = nil
	}
	return err
}

// listen registers the functions that receive what the core reports.
func (a *actor) listen() {
	a.errors, a.durable = nil, nil
	a.core.OnDurable(func(is bool) {
		a.durable = append(a.durable, fmt.Sprintf("durable %v", is))
	})
	a.core.OnError(func(i ErrorInfo) {
		line := "node " + i.Node
		if i.Event != "" {
			line = "event " + i.Event + " on " + i.Stream
		}
		line += fmt.Sprintf(", attempt %d: %v", i.Attempt, i.Err)
		if len(i.Causes) > 0 {
			line += " (because of " + strings.Join(i.Causes, ", ") + ")"
		}
		if i.Transient {
			line += "; to be tried again"
		}
		a.errors = append(a.errors, line)
	})
	a.core.OnConsole(func(i ConsoleInfo) {
		who := i.Node
		if i.Event != "" {
			who = i.Event
		}
		a.tell(a, 3+max(0, a.depth-1), "console of %s: %s", who, i.Message)
	})
}

// cmdWork prints the counters of work, and their increase since the last call.
func (s *stage) cmdWork(d *datadriven.TestData) error {
	who, err := s.namedActors(d)
	for _, a := range who {
		st, was := a.core.Stats(), a.worked
		a.tell(a, 1, "runs +%d  attempts +%d  matched +%d  filtered +%d  visits +%d  index writes +%d",
			st.Runs-was.Runs, st.Attempts-was.Attempts, st.Matched-was.Matched, st.Filtered-was.Filtered,
			st.Visits-was.Visits, st.IndexWrites-was.IndexWrites)
		a.worked = st
	}
	return err
}
