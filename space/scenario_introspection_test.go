package space

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/settlehq/settle/space/inspect"
)

// Commands that query: they print what a space reports about itself, and change nothing.

// cmdLinks prints the neighbours of a node.
func (s *stage) cmdLinks(d *datadriven.TestData) error {
	a, err := s.one(d)
	if err != nil {
		return err
	}
	id := arg(d, 1)
	v := a.core.Inspect()
	n, ok := v.Node(id)
	if !ok {
		return fmt.Errorf("there is no node %q", id)
	}
	readers, enveloped := inspect.Split(v.Readers(id))
	writers, envelopes := inspect.Split(v.Writers(id))
	for _, line := range []struct{ what, who string }{
		{"read by", edgeNames(readers)},
		{"read in its envelope by", edgeNames(enveloped)},
		{"reads from", edgeNames(writers)},
		{"reads in the envelope of", edgeNames(envelopes)},
		{"made by", n.Parent},
		{"made", strings.Join(n.Children, ", ")},
	} {
		if line.who != "" {
			a.tell(a, 1, "%s %s", line.what, line.who)
		}
	}
	return nil
}

func edgeNames(edges []inspect.Edge) string {
	var parts []string
	for _, e := range edges {
		part := e.Node + " (" + e.Address + ")"
		if e.Declared {
			part += ", as declared"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

// cmdWhy prints the explanation of nodes.
func (s *stage) cmdWhy(d *datadriven.TestData) error {
	a, err := s.one(d)
	if err != nil {
		return err
	}
	if p, ok := a.core.Inspect().Parked(); ok && arg(d, 1) == "" {
		for line := range strings.SplitSeq(p.String(), "\n") {
			a.tell(a, 1, "%s", line)
		}
	}
	for i := 1; arg(d, i) != ""; i++ {
		e, ok := a.core.Inspect().Explain(arg(d, i))
		if !ok {
			return fmt.Errorf("there is no node %q", arg(d, i))
		}
		for line := range strings.SplitSeq(e.String(), "\n") {
			a.tell(a, 1, "%s", line)
		}
	}
	return nil
}

func (s *stage) cmdNodestats(d *datadriven.TestData) error {
	a, err := s.one(d)
	if err != nil {
		return err
	}
	for i := 1; arg(d, i) != ""; i++ {
		n, ok := a.core.Inspect().Node(arg(d, i))
		if !ok {
			a.tell(a, 1, "%s: there is no such node", arg(d, i))
			continue
		}
		st := n.Stats
		line := fmt.Sprintf("%s: %s, %s", arg(d, i), counted(st.Runs, "run"), counted(st.Errors, "error"))
		if st.LastErr != nil {
			line += fmt.Sprintf(", the last run failed: %v", st.LastErr)
		}
		if st.Measured > 0 {
			line += fmt.Sprintf("; %d measured: %s on average, %s in all, the last %s", st.Measured, st.Average, st.Total, st.Last)
		}
		a.tell(a, 1, "%s", line)
	}
	return nil
}

// cmdTrace enables and disables the histories, and prints them.
func (s *stage) cmdTrace(d *datadriven.TestData) error {
	a, err := s.one(d)
	if err != nil {
		return err
	}
	switch word := arg(d, 1); word {
	case "on", "off":
		a.core.Recorder().RecordRuns(word == "on")
		a.core.Recorder().RecordTriggers(word == "on")
	case "runs":
		for _, e := range a.core.Inspect().History().Runs {
			a.tell(a, 1, "%s", runLine(&e))
		}
	case "triggers":
		for _, e := range a.core.Inspect().History().Triggers {
			a.tell(a, 1, "%s", triggerLine(&e))
		}
	default:
		err = fmt.Errorf("trace wants on, off, runs or triggers")
	}
	return err
}

func runLine(e *inspect.RunEntry) string {
	line := fmt.Sprintf("%d %s", e.N, e.By)
	if e.Pass != 0 {
		line = fmt.Sprintf("%d pass %d: %s", e.N, e.Pass, e.By)
	}
	add := func(what, it string) {
		if it != "" {
			line += "; " + what + it
		}
	}
	add("made by ", e.Parent)
	add("because of ", strings.Join(e.Causes, ", "))
	add("may write ", strings.Join(e.Declared, ", "))
	add("wrote ", strings.Join(e.Writes, ", "))
	if e.Cut() {
		line += fmt.Sprintf(" and %d more", e.Wrote-len(e.Writes))
	}
	add("waits for ", e.Waits)
	add("", string(e.Outcome))
	if e.Err != nil {
		add("error: ", e.Err.Error())
	}
	if e.Tx != 0 {
		line += fmt.Sprintf("; tx %d", e.Tx)
	}
	return line
}

func triggerLine(e *inspect.TriggerEntry) string {
	line := fmt.Sprintf("%d pass %d: %s by %s%s", e.N, e.Pass, e.Node, e.Cause, e.Origin())
	if !e.Live {
		line += ", dormant"
	}
	if e.NeverRan {
		line += ", never ran"
	}
	return line
}

// cmdDiagnose enables and disables the diagnosis, or prints its results.
func (s *stage) cmdDiagnose(d *datadriven.TestData) error {
	a, err := s.one(d)
	if err != nil {
		return err
	}
	switch word := arg(d, 1); word {
	case "on", "off":
		a.core.Recorder().Diagnose(word == "on")
		if word == "on" {
			return nil
		}
	case "when-busy":
		a.core.Recorder().DiagnoseWhenBusy(true)
		return nil
	}
	for _, m := range a.core.Recorder().Markers() {
		a.tell(a, 1, "marker: %s", m)
	}
	for _, c := range a.core.Inspect().History().Circles() {
		a.tell(a, 1, "circle: %s", c)
	}
	if a.core.Inspect().History().NonSettling {
		a.tell(a, 1, "it does not settle")
	}
	return nil
}

// cmdBusy lets seconds pass, in each of which the space was busy for the given time.
func (s *stage) cmdBusy(d *datadriven.TestData) error {
	a, err := s.one(d)
	if err != nil {
		return err
	}
	took, err := time.ParseDuration(arg(d, 1))
	if err != nil {
		return err
	}
	seconds, err := strconv.Atoi(option(d, "seconds"))
	if err != nil {
		return err
	}
	for range seconds {
		s.now += time.Second
		a.runAll()
		if a.core.Recorder().Busy(took) {
			a.tell(a, 1, "busy, found at %s", s.now)
		}
	}
	return nil
}

// cmdDurable prints the calls of OnDurable since the last cmdDurable.
func (s *stage) cmdDurable(d *datadriven.TestData) error {
	who, err := s.namedActors(d)
	for _, a := range who {
		a.tell(a, 1, "was told %s, is %v", names(a.durable), a.core.Durable())
		a.durable = nil
	}
	return err
}

func counted(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
