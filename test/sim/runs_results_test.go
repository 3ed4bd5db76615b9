package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/runs"
	"github.com/settlehq/settle/workflow"
)

// checkRuns: at rest, each run has ended, or waits for what the plan does not give; what is stored of it is what has happened to
// it; and its result is what plain code makes of the ends of its actions.
func (w *world) checkRuns() {
	if !w.plan.has("workflows") {
		return
	}
	for i := range w.plan.spaces {
		k := w.folds[spaceName(i)].clerk
		for _, id := range slices.Sorted(maps.Keys(k.flows)) {
			k.checkRun(k.flows[id])
		}
	}
	w.checkFamilies()
	w.checkSchedules()
	w.checkHeard()
}

func (k *clerk) checkRun(fl *flow) {
	k.checkStored(fl)
	k.checkResult(fl)
	if fl.state != runs.Running || fl.robbed || fl.lostTimer {
		return
	}
	for _, o := range fl.run.Open() {
		at := fl.timers[o.ID]
		switch {
		case o.Signal != "" && at == 0:
			k.f.w.count("runs that wait for a signal at rest")
		case o.Child != "" && !o.Retry:
		case o.Action == "" && o.Signal == "" && k.f.w.isFar(at):
			k.f.w.count("runs that sleep for long at rest")
		default:
			k.f.wrong("runs", "at rest, %s waits for %+v, until %d", fl.describe(), o, at)
		}
	}
}

// checkStored: a run that is rebuilt from what is stored, and one that is rebuilt from nothing, are where the run is.
func (k *clerk) checkStored(fl *flow) {
	read := func(doc string) (model.Value, error) { return k.f.docs[doc], nil }
	s, err := runs.Inspect(fl.id, read)
	if err != nil {
		k.f.wrong("runs", "run %s cannot be rebuilt: %v", fl.id, err)
		return
	}
	e := newEngine(fl.program)
	for i := range fl.made {
		if _, err := e.apply(&fl.made[i]); err != nil {
			k.f.wrong("runs", "run %s, rebuilt from nothing: %v", fl.id, err)
			return
		}
	}
	if got, want := openText(e.run.Open(), e.timers), openText(fl.run.Open(), fl.timers); got != want {
		k.f.wrong("runs", "run %s, rebuilt from nothing, waits for %s, want %s", fl.id, got, want)
	}
	if got, want := openText(s.Waiting, s.Timers), openText(fl.run.Open(), fl.timers); fl.state == runs.Running && got != want {
		k.f.wrong("runs", "run %s, as it is stored, waits for %s, want %s", fl.id, got, want)
	}
	h, err := runs.ReadHistory(fl.id, read)
	if err != nil {
		k.f.wrong("runs", "run %s has no history: %v", fl.id, err)
		return
	}
	if len(h.Events) != len(fl.made) {
		k.f.wrong("runs", "the history of run %s has %d steps, want %d", fl.id, len(h.Events), len(fl.made))
		return
	}
	for i, ev := range h.Events {
		if m := &fl.made[i]; ev.At != m.now || ev.Kind != m.kind() || ev.Step != i+1 {
			k.f.wrong("runs", "step %d of run %s is %+v, want %s at %d", i+1, fl.id, ev, m.kind(), m.now)
		}
	}
}

func openText(list []workflow.Open, timers map[string]int64) string {
	var b strings.Builder
	for _, o := range list {
		fmt.Fprintf(&b, "%s %s%s%s %d %v; ", o.ID, o.Action, o.Child, o.Signal, o.Attempt, o.Retry)
	}
	for _, id := range slices.Sorted(maps.Keys(timers)) {
		fmt.Fprintf(&b, "%s at %d; ", id, timers[id])
	}
	return b.String()
}

// kind is what the history calls a step.
func (m *made) kind() runs.EventKind {
	switch {
	case m.reset:
		return runs.EventReset
	case m.resumed:
		return runs.EventRetry
	case m.begin != nil:
		return runs.EventStart
	case m.done != nil:
		return runs.EventDone
	case m.failed != nil:
		return runs.EventFailed
	case m.signal != nil:
		return runs.EventSignal
	case m.due:
		return runs.EventTimer
	case m.room:
		return runs.EventRoom
	case m.cancel != "":
		return runs.EventCancel
	}
	panic("a step of no kind")
}

// answersTo are the last ends of the calls of a run, by what they were called for, and the order of those.
type answersTo struct {
	value map[string]jsontext.Value
	fail  map[string]string
	order []string
}

// answersOf collects the ends that have had an effect.
func answersOf(fl *flow) *answersTo {
	a := &answersTo{map[string]jsontext.Value{}, map[string]string{}, nil}
	for i := range fl.made {
		m := &fl.made[i]
		switch {
		case m.done != nil:
			name := fl.names[m.done.Work]
			delete(a.fail, name)
			a.value[name] = m.done.Result
			a.order = append(a.order, name)
		case m.failed != nil:
			a.fail[fl.names[m.failed.Work]] = m.failed.Type
			delete(a.value, fl.names[m.failed.Work])
		}
	}
	return a
}

// nameOfCall names a call by its arguments: those of the workflows here differ within a run.
func nameOfCall(w *workflow.Work) string {
	if w.Child != "" {
		return w.Child + " " + string(w.Args) + string(w.Named)
	}
	v, _ := model.ParseValue(w.Named)
	at, _ := v.Get("at").AsString()
	return strings.TrimSpace(w.Action + " " + at + " " + v.Get("x").String())
}

// of returns the result of a call, or a text in its place if it has failed.
func (a *answersTo) of(name, otherwise string) string {
	if v, is := a.value[name]; is {
		return string(v)
	}
	return otherwise
}

// checkResult compares the result of a run with that of plain code, given the ends of its actions.
func (k *clerk) checkResult(fl *flow) {
	if fl.end == nil {
		return
	}
	a := answersOf(fl)
	if fl.workflow == "saga" {
		k.checkSaga(fl, a)
	}
	if fl.state != runs.Done {
		return
	}
	n, _ := fl.args.Get("n").AsInt()
	got, want := string(fl.end.Result), ""
	switch fl.workflow {
	case "mixed":
		want = mixedResult(int(n), a, got)
	case "wide":
		want = wideResult(int(n), a)
	case "digest":
		want = digestResult(fl, got)
	case "approval":
		want = approvalResult(fl, got)
	case "leaf", "note":
		want = fmt.Sprint(n)
	case "odd":
		want = fmt.Sprint(n + 100)
	default:
		return
	}
	if got != want {
		k.f.wrong("results", "%s returns %s, want %s of %v %v", fl.describe(), got, want, a.value, a.fail)
	}
	k.f.w.count("results that were compared")
}

// mixedResult is what workflow mixed returns; the first element is its edition.
func mixedResult(n int, a *answersTo, got string) string {
	list := []string{strings.Split(strings.Trim(got, "[]"), ",")[0]}
	for i := range n {
		name := fmt.Sprint("act loop ", i)
		if a.fail[name] != workflow.TimeoutError {
			list = append(list, a.of(name, "-1"))
		}
	}
	for i := range n {
		first, then := fmt.Sprint("act part ", i), fmt.Sprint("act more ", i)
		if a.fail[then] != "" {
			first = then
		}
		list = append(list, a.of(first, "-2"))
	}
	return "[" + strings.Join(list, ",") + "]"
}

// wideResult is what workflow wide returns.
func wideResult(n int, a *answersTo) string {
	var list []string
	failed := false
	for i := range n + 2 {
		name := fmt.Sprint("act wide ", i)
		failed = failed || a.fail[name] != ""
		list = append(list, a.of(name, "-2"))
	}
	if n == 2 && failed {
		return "[-3]"
	}
	return "[" + strings.Join(list, ",") + "]"
}

// digestResult: each part counts once, or comes too late.
func digestResult(fl *flow, got string) string {
	n := 0
	for i := range fl.made {
		if fl.made[i].signal != nil {
			n++
		}
	}
	for k := range n + 1 {
		if want := fmt.Sprint(k * partBytes); got == want {
			return want
		}
	}
	return fmt.Sprintf("the size of at most %d parts", n)
}

// approvalResult: the first wait gets the first signal, and the second the next one, or none in time.
func approvalResult(fl *flow, got string) string {
	var given []string
	for i := range fl.made {
		if sig := fl.made[i].signal; sig != nil && sig.Name == "go" {
			given = append(given, string(sig.Value))
		}
	}
	if len(given) == 0 {
		return "nothing before there is a signal"
	}
	for _, second := range []string{"false", "true"} {
		if want := "[" + given[0] + "," + second + "]"; got == want {
			return want
		}
	}
	if len(given) < 2 {
		return "[" + given[0] + ",false]"
	}
	return "[" + given[0] + "," + given[1] + "]"
}

// checkSaga: the steps that were begun are undone in reverse order, if one of them has failed or the run was cancelled.
func (k *clerk) checkSaga(fl *flow, a *answersTo) {
	var undone []string
	for _, name := range a.order {
		if strings.HasPrefix(name, "undo ") {
			undone = append(undone, name)
		}
	}
	if fl.state == runs.Done {
		if len(undone) > 0 {
			k.f.wrong("results", "%s is done, and has undone %v", fl.describe(), undone)
		}
		return
	}
	u := fl.end.Error.Undone
	if u == nil {
		return // it has not begun a step
	}
	if u.Steps != len(undone) || !slices.IsSortedFunc(undone, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(b, a)) }) {
		k.f.wrong("results", "%s has undone %v, and says %+v", fl.describe(), undone, u)
	}
	n, _ := fl.args.Get("n").AsInt()
	begun := 1 // an undo step is registered before its step is made
	for _, done := a.value["act do 0"]; done && begun < int(n); begun++ {
		_, done = a.value[fmt.Sprint("act do ", begun)]
	}
	if total := u.Steps + u.Failed + u.Skipped; total != begun {
		k.f.wrong("results", "%s has begun %d steps, and undone %d: %+v", fl.describe(), begun, total, u)
	}
	k.f.w.count("sagas that were undone")
}
