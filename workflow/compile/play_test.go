package compile

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.starlark.net/starlark"

	"github.com/settlehq/settle/workflow"
)

// Modes of a play.
const (
	inOrder  = iota // what a sequential program would do next comes next
	anyOrder        // actions end and timers fire in a random order, and the run is loaded at random times
	loaded          // what a sequential program would do next comes next, and the run is loaded after each step
)

// play is a run of a random program.
type play struct {
	outcomeOf
	*rand.Rand
	p       *workflow.Program
	run     *workflow.Run
	actions *chance
	mode    int

	now     int64
	inputs  []workflow.Input
	works   []workflow.Work
	timers  map[string]int64
	past    []workflow.Input // answers that were given
	signals int
	why     string // the message of the error
}

func newPlay(p *workflow.Program, actions *chance, mode int, seed uint64) *play {
	return &play{p: p, run: workflow.New(p), actions: actions, mode: mode, Rand: rand.New(rand.NewPCG(seed, uint64(mode))), timers: map[string]int64{}}
}

// maxPlay bounds the steps of a program.
const maxPlay = 20_000

func (p *play) play(args string) (*outcomeOf, error) {
	err := p.step(workflow.Input{Begin: jsontext.Value(args)})
	for n := 0; err == nil && p.outcome == ""; n++ {
		if n > maxPlay {
			return nil, errors.New("it does not end")
		}
		err = p.next()
	}
	return &p.outcomeOf, err
}

// next lets one thing happen.
func (p *play) next() error {
	if p.mode == anyOrder {
		switch k := p.IntN(20); {
		case k == 0 && p.signals < 3:
			return p.signal()
		case k == 1 && len(p.past) > 0:
			return p.step(p.past[p.IntN(len(p.past))])
		case k == 2:
			return p.step(workflow.Input{Timer: "sleep 999"})
		}
	}
	ids := make([]string, 0, len(p.works)+len(p.timers))
	for i := range p.works {
		ids = append(ids, p.works[i].ID)
	}
	met := p.met()
	for id := range p.timers {
		if met[id] == nil {
			ids = append(ids, id)
		}
	}
	for id := range met {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int { return slices.Compare(pathOf(a), pathOf(b)) })
	switch {
	case len(ids) == 0:
		return p.signal()
	case p.mode == anyOrder:
		return p.happen(ids[p.IntN(len(ids))])
	}
	return p.happen(ids[0])
}

// pathOf returns the calls inside of fan-outs that lead to a work or a timer: programs that execute one call after the
// other would be at the least path.
func pathOf(id string) (path []int) {
	if _, key, is := strings.Cut(id, " "); is {
		id = key
	}
	for _, part := range strings.Split(id, ".") {
		if _, slot, is := strings.Cut(part, "/"); is {
			n, _ := strconv.Atoi(slot)
			path = append(path, n)
		}
	}
	return path
}

// signal sends the next signal.
func (p *play) signal() error {
	if p.signals++; p.signals > 1000 {
		return errors.New("it waits without end")
	}
	return p.step(workflow.Input{Signal: &workflow.Signal{Name: "s", Value: jsontext.Value(strconv.Itoa(p.signals))}})
}

// met returns the conditions that hold, or fail, by the ID of their wait.
func (p *play) met() map[string]*workflow.Met {
	met := map[string]*workflow.Met{}
	for _, c := range p.run.Conditions() {
		v, why := p.p.Holds(c.Func, c.Node, c.Vars, func(path []string) (starlark.Value, error) { return documentOf(path[0]), nil })
		switch {
		case why != nil:
			met[c.ID] = &workflow.Met{Wait: c.ID, Failed: &workflow.Failed{Type: why.Name, Message: why.Message}}
		case v != nil:
			met[c.ID] = &workflow.Met{Wait: c.ID, Value: v}
		}
	}
	return met
}

// happen performs an action, fires a timer, or reports a condition.
func (p *play) happen(id string) error {
	if m := p.met()[id]; m != nil {
		in := workflow.Input{Met: m}
		p.past = append(p.past, in)
		return p.step(in)
	}
	if at, is := p.timers[id]; is {
		delete(p.timers, id)
		p.now = max(p.now, at)
		return p.step(workflow.Input{Timer: id})
	}
	i := slices.IndexFunc(p.works, func(w workflow.Work) bool { return w.ID == id })
	w := p.works[i]
	p.works = slices.Delete(p.works, i, i+1)
	args, named, err := fromJSON(w.Args, w.Named)
	if err != nil {
		return err
	}
	p.log = append(p.log, shown(w.Action, args, named))
	v, fail := p.actions.answer(w.Action, args, named, w.Attempt)
	in := workflow.Input{}
	if fail != nil {
		in.Failed = &workflow.Failed{Work: w.ID, Attempt: w.Attempt, Type: fail.Name, Ancestors: fail.Ancestors, Message: fail.Message}
	} else {
		data, err := workflow.ToJSON(v)
		if err != nil {
			return err
		}
		in.Done = &workflow.Done{Work: w.ID, Attempt: w.Attempt, Result: data}
	}
	p.past = append(p.past, in)
	return p.step(in)
}

func (p *play) step(in workflow.Input) error {
	in.Now = p.now
	e, err := p.run.Step(in)
	if err != nil {
		return err
	}
	p.inputs = append(p.inputs, in)
	for _, id := range e.Cancel {
		p.works = slices.DeleteFunc(p.works, func(w workflow.Work) bool { return w.ID == id })
	}
	p.works = append(p.works, e.Start...)
	for _, t := range e.Timers {
		p.timers[t.ID] = t.At
	}
	for _, id := range e.Drop {
		delete(p.timers, id)
	}
	if o := e.Outcome; o != nil {
		if p.outcome = "result " + string(o.Result); o.Error != nil {
			p.outcome = "error " + o.Error.Name
			p.why = o.Error.Message
		}
		return nil
	}
	if err := p.consistent(); err != nil || p.mode == inOrder {
		return err
	}
	return p.reload()
}

// consistent compares what the run waits for with what it has asked for.
func (p *play) consistent() error {
	var want, got []string
	for _, o := range p.run.Open() {
		switch {
		case o.Retry:
			got = append(got, "retry "+o.ID)
		case o.Signal == "" && o.Until == "":
			got = append(got, o.ID)
		case p.timers[o.ID] != 0:
			got = append(got, o.ID)
		}
	}
	for i := range p.works {
		want = append(want, p.works[i].ID)
	}
	for id := range p.timers {
		want = append(want, id)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		return fmt.Errorf("it waits for %v, and has asked for %v", got, want)
	}
	return nil
}

// reload loads the run from a snapshot or, sometimes and if it has a lambda in a variable, from all its inputs.
func (p *play) reload() (err error) {
	switch k := p.IntN(40); {
	case k >= 2 && (k < 9 || p.mode == loaded):
		var snap, again []byte
		if snap, err = p.run.Snapshot(); err != nil && strings.Contains(err.Error(), "function lambda cannot be kept") {
			return p.replay()
		} else if err != nil {
			return err
		}
		if p.run, err = workflow.Load(p.p, snap); err != nil {
			return err
		}
		if k%4 > 0 {
			return nil
		}
		if again, err = p.run.Snapshot(); err == nil && string(again) != string(snap) {
			err = fmt.Errorf("a snapshot is loaded, and the next one is another:\n%s\n%s", snap, again)
		}
	case k < 2:
		return p.replay()
	}
	return err
}

// replay loads the run from all its inputs.
func (p *play) replay() error {
	p.run = workflow.New(p.p)
	for _, in := range p.inputs {
		if _, err := p.run.Step(in); err != nil {
			return err
		}
	}
	return nil
}
