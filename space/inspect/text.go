package inspect

import (
	"fmt"
	"strings"
)

// String describes the node in sentences, one per line: what it is, why it ran last, why it does not run now,
// what needs it, and what it is behind.
func (e Explanation) String() string {
	lines := []string{e.headline(), e.ranLast(), e.describeRunState(), e.demand()}
	if e.Stats.LastErr != nil {
		lines = append(lines, fmt.Sprintf("its last run failed: %v", e.Stats.LastErr))
	}
	if b := e.Behind; b != nil {
		lines = append(lines, "it is behind "+b.ID+", which is "+b.Status+": "+b.describeRunState())
	}
	return strings.Join(lines, "\n  ")
}

func (e *Explanation) headline() string {
	live := "dormant"
	if e.Live {
		live = "live"
	}
	line := fmt.Sprintf("%s: %s, %s, %s, %s", e.ID, e.Kind, e.Status, live, count(e.Stats.Runs, "run"))
	if e.Stats.Errors > 0 {
		line += ", " + count(e.Stats.Errors, "error")
	}
	return line
}

func count(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (e *Explanation) ranLast() string {
	switch {
	case e.Stats.Runs == 0 && e.Status == NeverRan:
		return "it never ran"
	case e.Stats.Runs == 0:
		return "it was resumed, and has not run here"
	case e.LastRun == nil:
		return "why it ran last is not recorded"
	}
	line := fmt.Sprintf("it ran last in pass %d", e.LastRun.Pass)
	if e.LastRun.Tx != 0 {
		line += fmt.Sprintf(" as transaction %d", e.LastRun.Tx)
	}
	if len(e.LastRun.Causes) == 0 {
		return line + ", for the first time or because it was made again"
	}
	return line + ", because of " + reasons(e.LastRun.Causes, e.LastTriggers)
}

// reasons lists causes, each with its origin if that is known.
func reasons(causes []string, triggers []TriggerEntry) string {
	var parts []string
	for _, c := range causes {
		for i := range triggers {
			if triggers[i].Cause == c {
				c += triggers[i].Origin()
				break
			}
		}
		parts = append(parts, c)
	}
	return strings.Join(parts, ", ")
}

// Origin describes where the change came from, as " (...)", or "" if unknown.
func (t *TriggerEntry) Origin() string {
	switch {
	case t.Writer != "" && t.Tx != 0:
		return fmt.Sprintf(" (written by %s in transaction %d)", t.Writer, t.Tx)
	case t.Writer != "":
		return fmt.Sprintf(" (written by %s)", t.Writer)
	case t.Tx != 0 && t.By != "":
		return fmt.Sprintf(" (%s, transaction %d)", t.By, t.Tx)
	case t.Tx != 0:
		return fmt.Sprintf(" (transaction %d)", t.Tx)
	case t.Seq != 0:
		return fmt.Sprintf(" (another runtime's commit %d)", t.Seq)
	}
	return ""
}

func (e *Explanation) describeRunState() string {
	why := ""
	if len(e.Causes) > 0 {
		why = ", because of " + reasons(e.Causes, e.Triggers)
	}
	switch e.RunState {
	case Running:
		return "it is running"
	case Runnable:
		return "it runs with the next pass" + why
	case Dormant:
		return "it does not run, since nobody needs it" + why
	case Gated:
		return fmt.Sprintf("it is held until %s by its %s%s", e.Until, e.Gate, why)
	case Waiting:
		return "it waits for " + e.Waits + ", which is not here" + why
	case Spent:
		return "it has run so often in this pass that it must wait" + why
	case Halted:
		return "the space runs nothing: " + e.Halt + why
	}
	return "nothing that it reads has changed since it ran"
}

func (e *Explanation) demand() string {
	way := ""
	for i, l := range e.Readers {
		if i > 0 {
			way += ", that by "
		}
		way += l.Node + " (" + l.Address + ")"
	}
	switch {
	case e.Need != "" && way == "":
		return "it is live: " + e.Need
	case e.Need != "":
		return "it is live: read by " + way + ", " + e.Need
	case e.Live:
		return "it is live, and nothing says why" // invariant 2 of node is broken
	case way == "":
		return "nobody reads what it writes"
	case e.Round:
		return "it is read by " + way + ", which only those read that nobody needs"
	}
	return "it is read by " + way + ", which nobody reads"
}
