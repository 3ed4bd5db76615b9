package space

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/settlehq/settle/model"
)

// expect is a command for what a case is about. Unlike what a command prints, -rewrite does not change it.
func init() {
	commands = append(commands, command{"expect", (*stage).cmdExpect})
	usages["expect"] = "RUNTIME :"
}

// expectations are what the lines of expect may ask of a runtime: the value of something with a name.
var expectations = map[string]func(a *actor, name string) (string, error){
	"runs":   ofNode(func(n NodeState) string { return strconv.FormatUint(n.Runs, 10) }),
	"causes": ofNode(func(n NodeState) string { return names(n.Causes) }),
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
	"children": func(a *actor, name string) (string, error) {
		n := a.core.graph.byID[name]
		if n == nil {
			return "", fmt.Errorf("there is no node %q", name)
		}
		var ids []string
		if n.more != nil {
			for _, c := range n.more.children {
				ids = append(ids, c.id())
			}
		}
		return names(ids), nil
	},
	"live readers": func(a *actor, name string) (string, error) {
		n := a.core.graph.byID[name]
		if n == nil {
			return "", fmt.Errorf("there is no node %q", name)
		}
		refs := int32(0)
		n.eachSurface(true, func(s *surface) { refs += s.refs })
		return strconv.Itoa(int(refs)), nil
	},
	"order": func(a *actor, name string) (string, error) {
		find := orders[name]
		if find == nil {
			return "", errors.New("it is: order of runs is NODE NODE..., in the last pass, of steps with its attempts, or of events or sends in the log")
		}
		return cmp.Or(strings.Join(find(a), " "), "none"), nil
	},
	"value": func(a *actor, name string) (string, error) { return show(a.core.Value(name)), nil },
	"outcome": func(a *actor, name string) (string, error) {
		for _, rc := range a.receiptsOf(name) {
			return string(rc.Outcome), nil
		}
		return "none", nil
	},
	"end": func(a *actor, name string) (string, error) {
		for _, rc := range a.receiptsOf(name) {
			return ending(rc), nil
		}
		return "none", nil
	},
	"by": func(a *actor, name string) (string, error) {
		for _, e := range a.logs[a.cfg.Space] {
			for _, tx := range a.commit(e).Txs {
				if tx.Receipt != nil && tx.Receipt.Event == name {
					return tx.By, nil
				}
			}
		}
		return "none", nil
	},
	"receipts": func(a *actor, name string) (string, error) { return strconv.Itoa(len(a.receiptsOf(name))), nil },
	"idle":     ofSpace(func(a *actor) string { return strconv.FormatBool(a.core.Idle()) }),
	"wake": ofSpace(func(a *actor) string {
		if a.wake == 0 {
			return "none"
		}
		return a.wake.String()
	}),
	"number": func(a *actor, name string) (string, error) {
		find := numbers[name]
		if find == nil {
			return "", fmt.Errorf("it is: number of NAME is N, where NAME is one of %s", names(sortedKeys(numbers)))
		}
		return strconv.FormatUint(find(a.core.Stats(), a), 10), nil
	},
}

// orders are the lists that a line of expect may ask for.
var orders = map[string]func(a *actor) []string{
	"runs":  func(a *actor) []string { return a.order },
	"steps": func(a *actor) []string { return a.steps },
	"events": func(a *actor) (ids []string) {
		for _, rc := range a.allReceipts(a.cfg.Space) {
			ids = append(ids, rc.Event)
		}
		return ids
	},
	"sends": func(a *actor) (ids []string) {
		for _, e := range a.logs[a.cfg.Space] {
			for _, tx := range a.commit(e).Txs {
				for _, send := range tx.Sends {
					ids = append(ids, send.ID)
				}
			}
		}
		return ids
	},
}

// numbers are the counters that a line of expect may ask for.
var numbers = map[string]func(st Stats, a *actor) uint64{
	"attempts":        func(st Stats, _ *actor) uint64 { return st.Attempts },
	"parks":           func(st Stats, _ *actor) uint64 { return st.Parked },
	"refused appends": func(st Stats, _ *actor) uint64 { return st.Refused },
	"outside writes":  func(st Stats, _ *actor) uint64 { return st.OutsideWrites },
	"node errors":     func(st Stats, _ *actor) uint64 { return st.NodeErrors },
	"reports":         func(_ Stats, a *actor) uint64 { return uint64(len(a.errors)) },
	"iterations":      func(_ Stats, a *actor) uint64 { return uint64(a.iterations) },
}

// receiptsOf returns the receipts of an event in the log of the actor's space.
func (a *actor) receiptsOf(event string) (list []*model.Receipt) {
	for _, rc := range a.allReceipts(a.cfg.Space) {
		if rc.Event == event {
			list = append(list, rc)
		}
	}
	return list
}

func ofSpace(find func(*actor) string) func(*actor, string) (string, error) {
	return func(a *actor, name string) (string, error) {
		if name != a.cfg.Space {
			return "", fmt.Errorf("this is space %s", a.cfg.Space)
		}
		return find(a), nil
	}
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
		{"runs of total is 1; status of total is clean; kind of total is computation; order of runs is observe:total total; reads of total is a; maker of total is none; status of totall is gone; demand of total is live; value of total is 0", ""},
		{"runs of total is 2", "runs of total is 2: it is 1"},
		{"value of b is 1", "value of b is 1: it is absent"},
		{"outcome of e1 is handled", "outcome of e1 is handled: it is none"},
		{"runs of totall is 1", `runs of totall is 1: there is no node "totall"`},
		{"order of runs is total observe:total", "order of runs is total observe:total: it is observe:total total"},
		{"order of passes is total", "order of passes is total: it is: order of runs is NODE NODE..., in the last pass, of steps with its attempts, or of events or sends in the log"},
		{"runs are 1", `"runs are 1" is not of the form WHAT of NAME is VALUE, where WHAT is one of by, causes, children, demand, end, idle, kind, live readers, maker, number, order, outcome, reads, receipts, runs, status, value, wake`},
		{"live readers of total is 1; children of total is nothing; causes of total is nothing; by of e1 is none; end of e1 is none; receipts of e1 is 0; idle of s is true; wake of s is none; number of attempts is 0; number of iterations is 1", ""},
		{"order of steps is observe:total total; order of events is none; order of sends is none", ""},
		{"live readers of total is 2", "live readers of total is 2: it is 1"},
		{"children of total is low", "children of total is low: it is nothing"},
		{"children of totall is low", `children of totall is low: there is no node "totall"`},
		{"causes of total is a", "causes of total is a: it is nothing"},
		{"by of e1 is handle add", "by of e1 is handle add: it is none"},
		{"live readers of totall is 1", `live readers of totall is 1: there is no node "totall"`},
		{"idle of s is false", "idle of s is false: it is true"},
		{"idle of t is true", "idle of t is true: this is space s"},
		{"wake of s is 1s", "wake of s is 1s: it is none"},
		{"end of e1 is handled", "end of e1 is handled: it is none"},
		{"receipts of e1 is 1", "receipts of e1 is 1: it is 0"},
		{"order of steps is total", "order of steps is total: it is observe:total total"},
		{"order of events is e1", "order of events is e1: it is none"},
		{"order of sends is s:1:1:0", "order of sends is s:1:1:0: it is none"},
		{"number of attempts is 1", "number of attempts is 1: it is 0"},
		{"number of tries is 1", "number of tries is 1: it is: number of NAME is N, where NAME is one of attempts, iterations, node errors, outside writes, parks, refused appends, reports"},
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
