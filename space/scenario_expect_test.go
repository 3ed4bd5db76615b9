package space

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
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
	"gate": func(a *actor, name string) (string, error) {
		return ofNode(func(n NodeState) string {
			if n.Until <= a.now {
				return "open"
			}
			return n.Until.String()
		})(a, name)
	},
	"value": func(a *actor, name string) (string, error) { return show(a.core.Value(name)), nil },
	"outcome": ofEvent(func(list []*model.Receipt) string {
		if len(list) == 0 {
			return "none"
		}
		return string(list[0].Outcome)
	}),
	"result": ofEvent(func(list []*model.Receipt) string {
		if len(list) == 0 {
			return "none"
		}
		return show(list[0].Result)
	}),
	"end": ofEvent(func(list []*model.Receipt) string {
		if len(list) == 0 {
			return "none"
		}
		return ending(list[0])
	}),
	"receipts": ofEvent(func(list []*model.Receipt) string { return strconv.Itoa(len(list)) }),
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

// printing are the commands that expect may execute: line of COMMAND is LINE. The runtime or
// its space is the first argument; other words of COMMAND follow it.
var printing = []string{
	"diagnose", "durable", "errors", "idle", "later", "log", "nodestats", "observations", "resumed", "stats", "trace", "wake", "work",
}

// asked lists what may stand before "of" in a line of expect.
func asked() []string { return append(sortedKeys(expectations), "line", "lines") }

// ofEvent is about the receipts that events with an ID have in the log of the space.
func ofEvent(find func([]*model.Receipt) string) func(*actor, string) (string, error) {
	return func(a *actor, name string) (string, error) {
		list := a.allReceipts(a.cfg.Space)
		return find(slices.DeleteFunc(list, func(rc *model.Receipt) bool { return rc.Event != name })), nil
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
	x := expecting{actor: a, printed: map[string][]string{}}
	for line := range strings.Lines(d.Input) {
		if err := x.expect(strings.TrimSpace(line)); err != nil {
			wrong = append(wrong, err.Error())
		}
	}
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "; "))
	}
	return nil
}

// expecting is one expect command. It executes each command that its lines are about once, because some of them print
// only what has happened since the last time.
type expecting struct {
	*actor
	printed map[string][]string
}

// expect checks one line: WHAT of NAME is VALUE.
func (x *expecting) expect(line string) error {
	if line == "" {
		return nil
	}
	left, want, ok1 := strings.Cut(line, " is ")
	what, name, ok2 := strings.Cut(left, " of ")
	if ok1 && ok2 && (what == "line" || what == "lines") {
		return x.compare(what, name, want)
	}
	find := expectations[what]
	if !ok1 || !ok2 || find == nil {
		return fmt.Errorf("%q is not of the form WHAT of NAME is VALUE, where WHAT is one of %s", line, names(asked()))
	}
	got, err := find(x.actor, name)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", line, err)
	case got != want:
		return fmt.Errorf("%s: it is %s", line, got)
	}
	if err := x.unmentioned(what, name, got); err != nil {
		return fmt.Errorf("%s: %w", line, err)
	}
	return nil
}

// compare checks that a command prints a line, or nothing at all if the line is "nothing", or so many lines.
func (x *expecting) compare(what, command, want string) error {
	lines, err := x.linesOf(command)
	switch {
	case err != nil:
		return fmt.Errorf("%s of %s: %w", what, command, err)
	case what == "lines" && strconv.Itoa(len(lines)) == want, what == "line" && slices.Contains(lines, want), what == "line" && want == names(lines):
		return nil
	}
	return fmt.Errorf("%s of %s is %s: it prints %s", what, command, want, names(lines))
}

// linesOf returns what a command prints for the runtime or its space.
func (x *expecting) linesOf(command string) ([]string, error) {
	if lines, ok := x.printed[command]; ok {
		return lines, nil
	}
	name, rest, _ := strings.Cut(command, " ")
	if !slices.Contains(printing, name) {
		return nil, fmt.Errorf("it is one of %s", names(printing))
	}
	whose := x.name
	if strings.HasPrefix(usages[name], "SPACE") {
		whose = x.cfg.Space
	}
	x.take()
	if err := x.do(strings.TrimSpace(name + " " + whose + " " + rest)); err != nil {
		return nil, err
	}
	var lines []string
	for line := range strings.Lines(x.take()) {
		if line = strings.TrimSpace(line); line != "> "+x.name {
			lines = append(lines, line)
		}
	}
	x.printed[command] = lines
	return lines, nil
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
		{"causes of total is nothing; gate of total is open; debounce of total is 0s; throttle of total is 0s; seen of observe:total is 0; seen of total is nothing; reasons of total is nothing; passes of s is 1; idle of s is true; durable of s is true; wake of s is none; deferred of s is none; settling of s is true; failures of s is 0", ""},
		{"line of idle is idle true, durable true; line of errors is nothing; line of trace runs is nothing; lines of errors is 0; lines of idle is 1; line of later is nothing waits", ""},
		{"result of e1 is none; receipts of e1 is 0", ""},
		{"receipts of e1 is 1", "receipts of e1 is 1: it is 0"},
		{"gate of total is 1s", "gate of total is 1s: it is open"},
		{"line of idle is idle false, durable true", "line of idle is idle false, durable true: it prints idle true, durable true"},
		{"line of idle is nothing", "line of idle is nothing: it prints idle true, durable true"},
		{"line of errors is node a, attempt 1: b", "line of errors is node a, attempt 1: b: it prints nothing"},
		{"lines of idle is 2", "lines of idle is 2: it prints idle true, durable true"},
		{"line of put is a", "line of put: it is one of diagnose, durable, errors, idle, later, log, nodestats, observations, resumed, stats, trace, wake, work"},
		{"line of trace never is a", "line of trace never: trace does not take never; it is: trace RUNTIME [on] [off] [runs] [triggers]"},
		{"runs of total is 2", "runs of total is 2: it is 1"},
		{"value of b is 1", "value of b is 1: it is absent"},
		{"outcome of e1 is handled", "outcome of e1 is handled: it is none"},
		{"runs of totall is 1", `runs of totall is 1: there is no node "totall"`},
		{"order of runs is total observe:total", "order of runs is total observe:total: it is observe:total total"},
		{"debounce of totall is 0s", `debounce of totall is 0s: there is no node "totall"`},
		{"seen of observe:total is 1", "seen of observe:total is 1: it is 0"},
		{"idle of t is true", "idle of t is true: the runtime has space s"},
		{"runs are 1", `"runs are 1" is not of the form WHAT of NAME is VALUE, where WHAT is one of ` + names(asked())},
		{"order of passes is total", "order of passes is total: it is: order of runs is NODE NODE..., in the last pass, of steps with its attempts, or of events or sends in the log"},
		{"live readers of total is 1; children of total is nothing; causes of total is nothing; by of e1 is none; end of e1 is none; receipts of e1 is 0; idle of s is true; wake of s is none; number of attempts is 0; number of iterations is 1", ""},
		{"order of steps is observe:total total; order of events is none; order of sends is none", ""},
		{"live readers of total is 2", "live readers of total is 2: it is 1"},
		{"children of total is low", "children of total is low: it is nothing"},
		{"children of totall is low", `children of totall is low: there is no node "totall"`},
		{"causes of total is a", "causes of total is a: it is nothing"},
		{"by of e1 is handle add", "by of e1 is handle add: it is none"},
		{"live readers of totall is 1", `live readers of totall is 1: there is no node "totall"`},
		{"idle of s is false", "idle of s is false: it is true"},
		{"wake of s is 1s", "wake of s is 1s: it is none"},
		{"end of e1 is handled", "end of e1 is handled: it is none"},
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
