package space

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// expect is a command for what a case is about. Unlike what a command prints, -rewrite does not change it.
func init() {
	commands = append(commands, command{"expect", (*stage).cmdExpect})
	usages["expect"] = "RUNTIME :"
}

// expectations are what the lines of expect may ask of a runtime: the value of something with a name.
var expectations = map[string]func(a *actor, name string) (string, error){
	"runs":   ofNode(func(n NodeState) string { return strconv.FormatUint(n.Runs, 10) }),
	"kind":   ofNode(func(n NodeState) string { return n.Kind.String() }),
	"reads":  ofNode(func(n NodeState) string { return names(n.Reads) }),
	"maker":  ofNode(func(n NodeState) string { return cmp.Or(n.Parent, "none") }),
	"demand": ofNode(func(n NodeState) string { return demandOf(n.Live) }),
	"status": func(a *actor, name string) (string, error) {
		if n := a.core.graph.byID[name]; n != nil {
			return n.status.String(), nil
		}
		return "gone", nil
	},
	"order": func(a *actor, name string) (string, error) {
		if name != "runs" {
			return "", errors.New("it is: order of runs is NODE NODE..., in the last pass")
		}
		return strings.Join(a.order, " "), nil
	},
	"value": func(a *actor, name string) (string, error) { return show(a.core.Value(name)), nil },
	"outcome": func(a *actor, name string) (string, error) {
		for _, rc := range a.allReceipts(a.cfg.Space) {
			if rc.Event == name {
				return string(rc.Outcome), nil
			}
		}
		return "none", nil
	},
}

func ofNode(find func(NodeState) string) func(*actor, string) (string, error) {
	return func(a *actor, name string) (string, error) {
		for _, n := range a.core.Nodes() {
			if n.ID == name {
				return find(n), nil
			}
		}
		return "", fmt.Errorf("there is no node %q", name)
	}
}

func (s *stage) cmdExpect(d *datadriven.TestData) error {
	a, err := s.one(d)
	if err != nil {
		return err
	}
	if strings.TrimSpace(d.Input) == "" {
		return errors.New("it expects nothing")
	}
	var wrong []string
	for line := range strings.Lines(d.Input) {
		if err := a.expect(strings.TrimSpace(line)); err != nil {
			wrong = append(wrong, err.Error())
		}
	}
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "; "))
	}
	return nil
}

// expect checks one line: WHAT of NAME is VALUE.
func (a *actor) expect(line string) error {
	if line == "" {
		return nil
	}
	left, want, ok1 := strings.Cut(line, " is ")
	what, name, ok2 := strings.Cut(left, " of ")
	find := expectations[what]
	if !ok1 || !ok2 || find == nil {
		return fmt.Errorf("%q is not of the form WHAT of NAME is VALUE, where WHAT is one of %s", line, names(sortedKeys(expectations)))
	}
	got, err := find(a, name)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", line, err)
	case got != want:
		return fmt.Errorf("%s: it is %s", line, got)
	}
	return nil
}

func TestScenarios_ExpectRefusesWhatIsNotSo(t *testing.T) {
	s := newStage(t)
	for _, line := range []string{"register s : computation total = sum(a, 0)", "runtimes r1.s", "observe r1.s total", "stabilize"} {
		if err := s.do(line); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ line, says string }{
		{"runs of total is 1; status of total is clean; kind of total is computation; order of runs is observe:total total; reads of total is a; maker of total is none; status of totall is gone; demand of total is live; value of total is 0; causes of total is nothing; gate of total is open; debounce of total is 0s; throttle of total is 0s; seen of observe:total is 0; seen of total is nothing; reasons of total is nothing; passes of s is 1; idle of s is true; durable of s is true; wake of s is none; deferred of s is none; settling of s is true; failures of s is 0", ""},
		{"runs of total is 2", "runs of total is 2: it is 1"},
		{"value of b is 1", "value of b is 1: it is absent"},
		{"outcome of e1 is handled", "outcome of e1 is handled: it is none"},
		{"runs of totall is 1", `runs of totall is 1: there is no node "totall"`},
		{"order of runs is total observe:total", "order of runs is total observe:total: it is observe:total total"},
		{"order of passes is total", "order of passes is total: it is: order of runs is NODE NODE..., in the last pass"},
		{"gate of total is 1s", "gate of total is 1s: it is open"},
		{"debounce of totall is 0s", `debounce of totall is 0s: there is no node "totall"`},
		{"seen of observe:total is 1", "seen of observe:total is 1: it is 0"},
		{"idle of t is true", "idle of t is true: the runtime has space s"},
		{"runs are 1", `"runs are 1" is not of the form WHAT of NAME is VALUE, where WHAT is one of causes, debounce, deferred, demand, durable, failures, gate, idle, kind, maker, order, outcome, passes, reads, reasons, runs, seen, settling, status, throttle, value, wake`},
	} {
		err := s.do("expect r1.s : " + c.line)
		if err == nil {
			err = errors.New("")
		}
		if err.Error() != c.says {
			t.Errorf("%s:\n  %s\nand not\n  %s", c.line, err, c.says)
		}
	}
}
