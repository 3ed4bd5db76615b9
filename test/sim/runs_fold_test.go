package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/runs"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/workflow"
)

// The names of the documents of runs, beside those that package runs exports.
const (
	pagesOf     = "runlog_"
	childrenOf  = "runchildren_"
	snapshotOf  = "runstate_"
	graphOf     = "workflow_"
	runsLoad    = "runs_load"
	runTimer    = "run_"
	planTimer   = "schedule_"
	scheduleDoc = "schedule_"
)

// flow is a run according to the log: made of the events that its space has handled, and never of what the space has
// stored.
type flow struct {
	id, workflow string
	program      *workflow.Program
	args         model.Value
	*engine
	made  []made
	state runs.State
	ended int64
	end   *workflow.Outcome
	// revoked is set if it was a cancellation that began the undo steps.
	revoked bool
	// undone is set once undo steps have begun.
	undone bool
	// by is the call that has started the run, joined are those that wait for it besides, by name.
	by     *caller
	joined map[string]caller
	chain  []string
	// calls are the calls of children that have not ended, by work.
	calls    map[string]*childCall
	schedule string
	// robbed is set if an event was lost that the run waits for: an operator has cancelled it, or three processes have
	// died of it. lostTimer is set if that was the event of its timer.
	robbed, lostTimer bool
	// passedOver is set while a run waits that was not among those that were woken.
	passedOver bool
	waited     bool // for room, see checkRoom
	more       int  // events under way that have calls started which wait
	resets     int
}

// clerk has the runs of a space according to its log.
type clerk struct {
	f         *fold
	flows     map[string]*flow
	starts    map[taskStart]*started
	schedules map[string]*timetable
	bounds    runs.Bounds

	// Of the transaction that is being taken:
	c       *model.Commit
	tx      *model.Tx
	after   map[string]model.Value
	records map[string][]stored
	wants   []wanted
	touched map[string]*flow
	// ends are the runs that have ended, and waited how many runs waited for room before it.
	ends   []*flow
	waited int
}

// stored is a record of a step, as far as it has what no event has.
type stored struct {
	n       int
	now     int64
	started int
}

// wanted is an event that the transaction must send.
type wanted struct {
	to, stream, payload string
	call                *childCall // whose start it is
}

func newClerk(f *fold) *clerk {
	return &clerk{f: f, flows: map[string]*flow{}, starts: map[taskStart]*started{}, schedules: map[string]*timetable{}, bounds: f.w.plan.boundsOf()}
}

// isRunDoc reports whether a document belongs to runs or schedules.
func isRunDoc(doc string) bool {
	for _, prefix := range []string{"run_", pagesOf, childrenOf, snapshotOf, graphOf, scheduleDoc} {
		if strings.HasPrefix(doc, prefix) {
			return true
		}
	}
	return doc == runs.Index || doc == runs.Schedules || doc == runsLoad || slices.Contains(deeds, doc) || model.IsTaskDoc(doc)
}

// isRunTimer reports whether a timer is that of a run or a schedule.
func isRunTimer(name string) bool {
	return strings.HasPrefix(name, runTimer) || strings.HasPrefix(name, planTimer)
}

// runStreams are the streams of package runs, and how their events are taken.
var runStreams = map[string]func(k *clerk, ev *model.Event){
	runs.StreamStart: (*clerk).takeStart, runs.StreamSignal: (*clerk).takeSignal, runs.StreamCancel: (*clerk).takeCancel,
	runs.StreamRetry: (*clerk).takeRetry, runs.StreamReset: (*clerk).takeReset, runs.StreamTimer: (*clerk).takeTimer,
	runs.StreamChild: (*clerk).takeChild, runs.StreamChildEnd: (*clerk).takeChildEnd, runs.StreamChildCancel: (*clerk).takeChildCancel,
	runs.StreamChildSent: (*clerk).takeChildSent, runs.StreamMet: (*clerk).takeMet, model.Undelivered: (*clerk).takeNotice,
	runs.StreamScheduleSet: (*clerk).takeSchedule, runs.StreamSchedulePause: (*clerk).takeSchedule, runs.StreamScheduleResume: (*clerk).takeSchedule,
	runs.StreamScheduleTrigger: (*clerk).takeSchedule, runs.StreamScheduleDelete: (*clerk).takeSchedule, runs.StreamScheduleTimer: (*clerk).takeSchedule,
	deeds[0]: (*clerk).takeEnd, deeds[1]: (*clerk).takeEnd, deeds[2]: (*clerk).takeEnd,
}

// ofRuns reports whether a stream is one of package runs, or of an action that workflows call.
func (p *plan) ofRuns(stream string) bool {
	return p.has("workflows") && runStreams[stream] != nil && stream != model.Undelivered
}

// take takes a transaction that has handled an event of a run. The documents are not updated yet.
func (k *clerk) take(c *model.Commit, tx *model.Tx, stream string, ev *model.Event, after map[string]model.Value) {
	k.c, k.tx, k.after, k.wants, k.touched, k.ends = c, tx, after, nil, map[string]*flow{}, nil
	k.waited = k.f.docs[runsLoad].Get("waiting").Len()
	k.collect()
	if forged(stream, ev) {
		k.refused(stream, ev)
		return
	}
	if rc := tx.Receipt; rc.Outcome != model.Handled {
		k.lost(stream, ev)
		return
	}
	runStreams[stream](k, ev)
	k.wake()
	for id, list := range k.records { // any order: each on its own
		if len(list) > 0 {
			k.f.wrong("runs", "%s %s: run %s has %d steps more than what has happened to it", stream, ev.ID, id, len(list))
		}
	}
	k.compareSends(stream, ev)
}

// collect finds the records that the transaction writes.
func (k *clerk) collect() {
	k.records = map[string][]stored{}
	for i := range k.tx.Writes {
		w := &k.tx.Writes[i]
		name, is := strings.CutPrefix(w.Doc, pagesOf)
		if !is {
			continue
		}
		id := name[:strings.LastIndexByte(name, '_')]
		add := func(key string, v model.Value) {
			n, err := strconv.Atoi(key)
			text, is := v.AsString()
			var r struct {
				Now     int64 `json:"now"`
				Started int   `json:"started"`
			}
			if !is {
				return
			}
			if err2 := json.Unmarshal([]byte(text), &r); err != nil || err2 != nil {
				k.f.wrong("runs", "run %s: record %s is %s", id, key, v)
			}
			k.records[id] = append(k.records[id], stored{n, r.Now, r.Started})
		}
		if len(w.Path) == 1 {
			add(w.Path[0], w.Value)
			continue
		}
		for key, v := range w.Value.All() {
			add(key, v)
		}
	}
	for _, list := range k.records { // any order: each on its own
		slices.SortFunc(list, func(a, b stored) int { return a.n - b.n })
	}
}

// lost takes an event that had no effect, because it was cancelled, has expired or was given up. Operations of clients may
// also have failed as they were refused.
func (k *clerk) lost(stream string, ev *model.Event) {
	for doc := range k.after { // any order: each on its own
		if isRunDoc(doc) && !(slices.Contains(deeds, stream) && (doc == stream || model.IsTaskDoc(doc))) {
			k.f.wrong("runs", "%s %s is %s, and has written %s", stream, ev.ID, k.tx.Receipt.Outcome, doc)
		}
	}
	rc := k.tx.Receipt
	k.f.w.count("events of runs without effect: " + string(rc.Outcome))
	if rc.Outcome == model.Rejected {
		k.f.wrong("runs", "%s %s %s is rejected: %s", stream, ev.ID, ev.Payload, rc.Code)
	}
	if rc.Outcome == model.Failed && !strings.HasPrefix(rc.Error, "the handler never came back") && !k.refuses(stream, ev) {
		k.f.wrong("runs", "%s %s %s has failed: %s", stream, ev.ID, ev.Payload, rc.Error)
	}
	id, _ := ev.Payload.Get("run").AsString()
	if in, is := ev.Payload.Get("parent").AsString(); is && stream == runs.StreamChild { // its parent may not get a report
		if by, minted := model.OriginOf(model.FirstID(ev.ID)); minted && rc.Outcome == model.Failed {
			k.f.w.rob(by.Space, in)
		}
	}
	switch stream {
	case deeds[0], deeds[1], deeds[2]: // another report of the end, which was on its way, may still come
		key, _ := ev.Payload.Get("key").AsString()
		if t := k.f.task(stream, key); k.flowOf(&t) != nil {
			k.flowOf(&t).robbed = true
		}
	case runs.StreamTimer:
		if fl := k.flows[id]; fl != nil {
			if step, _ := ev.Payload.Get("step").AsString(); step == "more" {
				fl.more--
				fl.robbed = true
			} else {
				fl.lostTimer = true
			}
		}
	case runs.StreamChildEnd, runs.StreamChildCancel, runs.StreamChildSent:
		k.f.w.rob(k.f.space, id)
	case runs.StreamScheduleTimer:
		name, _ := ev.Payload.Get("schedule").AsString()
		if t := k.schedules[name]; t != nil {
			t.robbed = true
		}
	}
}

// rob notes that a run has lost an event.
func (w *world) rob(space, id string) {
	if f := w.folds[space]; f != nil && f.clerk.flows[id] != nil {
		f.clerk.flows[id].robbed = true
	}
}

// refuses reports whether an event of a client is one that must be refused, and fails because its sender does not read
// answers.
func (k *clerk) refuses(stream string, ev *model.Event) bool {
	if asked, _ := ev.Payload.Get("answer").AsBool(); asked {
		return false
	}
	why := runs.Reason("")
	switch stream {
	case runs.StreamStart:
		why = k.refusesStart(ev)
	case runs.StreamSignal, runs.StreamCancel:
		_, why = k.ongoing(ev)
	case runs.StreamRetry, runs.StreamReset:
		_, _, _, why = k.rewinds(stream, ev)
	default:
		return strings.HasPrefix(stream, "workflow-schedule-") && stream != runs.StreamScheduleTimer
	}
	if why != "" {
		k.f.w.count("operations on runs that were refused")
	}
	return why != ""
}

// answers checks the result of an operation of a client, and reports whether it was refused.
func (k *clerk) answers(ev *model.Event, why runs.Reason) bool {
	got, _ := k.tx.Receipt.Result.Get("refused").AsString()
	if asked, _ := ev.Payload.Get("answer").AsBool(); got != string(why) || why != "" && !asked {
		k.f.wrong("runs", "%s %s is answered with %s, want refusal %q", k.tx.By, ev.Payload, k.tx.Receipt.Result, why)
	}
	if why != "" {
		k.f.w.count("operations on runs that were refused")
	}
	return why != ""
}

// step makes a step of a run.
func (k *clerk) step(fl *flow, m made) {
	k.touched[fl.id] = fl
	list := k.records[fl.id]
	if len(list) == 0 {
		k.f.wrong("runs", "%s: run %s makes no step", k.tx.By, fl.id)
		return
	}
	r := list[0]
	k.records[fl.id] = list[1:]
	m.started = r.started
	if m.now = r.now; r.n != len(fl.made) || m.now > k.f.w.wall() {
		k.f.wrong("runs", "run %s makes step %d at %d, want step %d; it is %d", fl.id, r.n, r.now, len(fl.made), k.f.w.wall())
	}
	out, err := fl.apply(&m)
	if err != nil {
		k.f.wrong("runs", "step %d of run %s: %v", r.n, fl.id, err)
		return
	}
	if fl.run.Undoing() != nil && !fl.undone {
		fl.revoked, fl.undone = m.cancel != "", true
		k.f.w.count("runs that began their undo steps")
	}
	fl.made = append(fl.made, m)
	k.f.w.count("steps of runs")
	k.children(fl, &out)
	if k.startsMore(fl, &out) {
		fl.more++
		k.want(k.f.space, runs.StreamTimer, model.Object(model.F("run", fl.id), model.F("step", "more")))
	}
	if out.outcome != nil {
		k.ended(fl, &m, out.outcome)
	}
}

// undid reports whether undo steps have been executed, or are being executed.
func (fl *flow) undid() bool {
	if fl.state == runs.Running {
		return fl.run.Undoing() != nil
	}
	u := fl.end.Error
	return fl.undone || u != nil && u.Undone != nil && u.Undone.Steps+u.Undone.Failed > 0
}

// ended notes that a run has ended.
func (k *clerk) ended(fl *flow, m *made, o *workflow.Outcome) {
	fl.end, fl.ended, fl.state = o, m.now, runs.Done
	if o.Error != nil {
		if fl.state = runs.Failed; fl.revoked || m.cancel != "" && !fl.undone {
			fl.state = runs.Cancelled
		}
	}
	k.ends = append(k.ends, fl)
	k.f.w.count("runs: " + string(fl.state))
	if o.Error != nil {
		k.f.w.count("runs that failed with a " + o.Error.Name)
	}
	k.report(fl)
}

// compareSends compares the events that the transaction sends with those that it must send.
func (k *clerk) compareSends(stream string, ev *model.Event) {
	for i := range k.tx.Sends {
		s := &k.tx.Sends[i]
		if s.Timer != "" || stream == model.Undelivered && runStreams[s.Stream] == nil {
			continue
		}
		j := slices.IndexFunc(k.wants, func(w wanted) bool {
			return w.to == s.To && w.stream == s.Stream && w.payload == s.Payload.String()
		})
		if j < 0 {
			k.f.wrong("runs", "%s %s sends %s to %s/%s; want %+v", stream, ev.ID, s.Payload, s.To, s.Stream, k.wants)
			continue
		}
		if c := k.wants[j].call; c != nil {
			c.sent = s.ID
		}
		k.wants = slices.Delete(k.wants, j, j+1)
	}
	if len(k.wants) > 0 {
		k.f.wrong("runs", "%s %s does not send %+v", stream, ev.ID, k.wants)
	}
}

func (k *clerk) want(to, stream string, payload model.Value) {
	k.wants = append(k.wants, wanted{to: to, stream: stream, payload: payload.String()})
}

// refusesStart returns why a start is refused, "" if it is not.
func (k *clerk) refusesStart(ev *model.Event) runs.Reason {
	name, _ := ev.Payload.Get("workflow").AsString()
	if k.f.w.plan.definitions(k.f.edition)[name] == nil {
		return runs.NoWorkflow
	}
	id, args := startOf(ev)
	fl := k.flows[id]
	switch {
	case fl != nil && (fl.workflow != name || !model.Equal(fl.args, args)):
		return runs.Exists
	case fl == nil && !k.fits(name, args):
		return runs.Invalid
	}
	return ""
}

// fits reports whether the arguments are those that the workflow has.
func (k *clerk) fits(name string, args model.Value) bool {
	params := parametersOf[name]
	for _, p := range params {
		if args.Get(p).IsAbsent() {
			return false
		}
	}
	return args.Len() == len(params)
}

// parametersOf are the parameters of the workflows; none has a default.
var parametersOf = func() map[string][]string {
	of := map[string][]string{}
	for name, src := range workflows { // any order: each on its own
		list := regexp.MustCompile(`(?m)^def run\((.*)\):`).FindStringSubmatch(src)[1]
		for p := range strings.SplitSeq(list, ",") {
			of[name] = append(of[name], strings.TrimSpace(p))
		}
	}
	return of
}()

func startOf(ev *model.Event) (id string, args model.Value) {
	id, is := ev.Payload.Get("run").AsString()
	if !is {
		id = model.NameOf(ev.ID)
	}
	if args = ev.Payload.Get("args"); args.IsAbsent() {
		args = model.Object()
	}
	return id, args
}

func (k *clerk) takeStart(ev *model.Event) {
	if k.answers(ev, k.refusesStart(ev)) {
		return
	}
	name, _ := ev.Payload.Get("workflow").AsString()
	id, args := startOf(ev)
	started, _ := k.tx.Receipt.Result.Get("started").AsBool()
	if fl := k.flows[id]; (fl == nil) != started {
		k.f.wrong("runs", "start %s of run %s, which exists: %v, is answered with %s", ev.ID, id, fl != nil, k.tx.Receipt.Result)
	} else if fl != nil {
		k.f.w.count("starts of runs that exist")
		return
	}
	m := made{begin: jsontext.Value(args.String())}
	if seconds, is := ev.Payload.Get("deadline").AsFloat(); is {
		m.deadline = int64(seconds * 1000)
	}
	k.create(id, name, args, nil, nil, m)
}

// create creates a run, and makes its first step.
func (k *clerk) create(id, name string, args model.Value, by *caller, chain []string, m made) *flow {
	p := k.f.w.plan.definitions(k.f.edition)[name]
	if p == nil {
		k.f.wrong("runs", "run %s is started of workflow %s, which edition %d does not have", id, name, k.f.edition)
		p = k.f.w.plan.definitions(1)[name]
	}
	fl := &flow{id: id, workflow: name, program: p, args: args, engine: newEngine(p), state: runs.Running, by: by, joined: map[string]caller{}, chain: chain, calls: map[string]*childCall{}}
	k.flows[id] = fl
	k.f.w.count("runs of workflow " + name)
	k.step(fl, m)
	return fl
}

// ongoing returns the run that an event names, or why it is refused.
func (k *clerk) ongoing(ev *model.Event) (*flow, runs.Reason) {
	id, _ := ev.Payload.Get("run").AsString()
	switch fl := k.flows[id]; {
	case fl == nil:
		return nil, runs.NoRun
	case fl.state != runs.Running:
		return fl, runs.Ended
	default:
		return fl, ""
	}
}

func (k *clerk) takeSignal(ev *model.Event) {
	fl, why := k.ongoing(ev)
	if k.answers(ev, why) {
		return
	}
	in := &workflow.Signal{}
	in.Name, _ = ev.Payload.Get("signal").AsString()
	if v := ev.Payload.Get("value"); !v.IsAbsent() {
		in.Value = jsontext.Value(v.String())
	}
	k.f.w.count("signals")
	k.step(fl, made{signal: in})
}

func (k *clerk) takeCancel(ev *model.Event) {
	fl, why := k.ongoing(ev)
	if k.answers(ev, why) {
		return
	}
	atOnce, _ := ev.Payload.Get("at_once").AsBool()
	k.f.w.count("runs that clients have cancelled")
	k.step(fl, made{cancel: "cancelled", atOnce: atOnce})
}

func (k *clerk) takeTimer(ev *model.Event) {
	id, _ := ev.Payload.Get("run").AsString()
	fl := k.flows[id]
	if fl == nil || fl.state != runs.Running {
		return
	}
	if step, _ := ev.Payload.Get("step").AsString(); step == "more" {
		k.f.w.count("steps that only start calls which wait")
		fl.more--
		k.step(fl, made{room: true})
		return
	}
	k.f.w.count("timers of runs")
	k.step(fl, made{due: true})
	if n := len(fl.made); fl.made[n-1].now < ev.NotBefore {
		k.f.wrong("early", "the timer of run %s is due at %d, and has fired at %d", id, ev.NotBefore, fl.made[n-1].now)
	}
}

// takeEnd takes the end of a task of an action.
func (k *clerk) takeEnd(ev *model.Event) {
	key, _ := ev.Payload.Get("key").AsString()
	n, _ := ev.Payload.Get("n").AsInt()
	t := k.f.task(ev.Stream, key)
	if t.State != space.TaskPending && !t.Unhandled || t.N != n || !ev.Payload.Get("attempt").IsAbsent() {
		k.f.w.count("ends of actions that are not waited for")
		return
	}
	fl := k.flowOf(&t)
	if fl == nil || fl.state != runs.Running {
		k.f.wrong("runs", "task %s of %s is pending, and its run has ended", key, ev.Stream)
		return
	}
	work, _ := t.In.Get("work").AsString()
	attempt, _ := t.In.Get("attempt").AsInt()
	m := made{done: &workflow.Done{Work: work, Attempt: int(attempt)}}
	if out := ev.Payload.Get("out"); !out.IsAbsent() {
		m.done.Result = jsontext.Value(out.String())
	}
	if text, is := ev.Payload.Get("error").AsString(); is {
		m.done = nil
		m.failed = &workflow.Failed{Work: work, Attempt: int(attempt)}
		if json.Unmarshal([]byte(text), m.failed) != nil {
			m.failed.Type, m.failed.Message = "Error", text
		}
	}
	k.checkEnd(ev, &t, int(attempt))
	k.step(fl, m)
}

// flowOf returns the run of a task.
func (k *clerk) flowOf(t *space.Task) *flow {
	id, _ := t.In.Get("run").AsString()
	return k.flows[id]
}

// verify compares the documents with the runs, after a transaction.
func (k *clerk) verify() {
	if k.tx == nil {
		return
	}
	k.removed()
	for _, id := range slices.Sorted(maps.Keys(k.touched)) {
		if fl := k.touched[id]; k.flows[id] == fl {
			k.compare(fl)
		}
	}
	index := k.f.docs[runs.Index]
	if index.Len() != len(k.flows) {
		k.f.wrong("runs", "there are the runs %s, want %v", index, slices.Sorted(maps.Keys(k.flows)))
	}
	k.verifyTasks()
	k.checkRoom()
	k.verifySchedules()
	k.tx = nil
}

// compare compares the documents of a run.
func (k *clerk) compare(fl *flow) {
	doc, entry := k.f.docs[runs.Doc(fl.id)], k.f.docs[runs.Index].Get(fl.id)
	s, err := runs.StatusOf(fl.id, doc)
	if err != nil {
		k.f.wrong("runs", "%v", err)
		return
	}
	listed, _ := entry.Get("state").AsString()
	switch {
	case s.State != fl.state || listed != string(fl.state) || s.Workflow != fl.workflow || s.Version != fl.program.Version:
		k.f.wrong("runs", "run %s is %s of %s %s, and listed as %s; want %s of %s %s", fl.id, s.State, s.Workflow, s.Version, entry, fl.state, fl.workflow, fl.program.Version)
	case !model.Equal(s.Args, fl.args) || s.Steps != len(fl.made) || s.Ended != fl.ended:
		k.f.wrong("runs", "run %s has %d steps, arguments %s and ended at %d, want %d, %s and %d", fl.id, s.Steps, s.Args, s.Ended, len(fl.made), fl.args, fl.ended)
	case outcomeOf(doc) != outcomeText(fl.end):
		k.f.wrong("runs", "run %s %s, want: %s", fl.id, outcomeOf(doc), outcomeText(fl.end))
	case (s.Undoing != nil) != (fl.state == runs.Running && fl.run.Undoing() != nil):
		k.f.wrong("runs", "run %s executes undo steps: %v", fl.id, s.Undoing)
	}
	if parent := s.Parent; (parent == nil) != (fl.by == nil) || parent != nil && (parent.Space != fl.by.space || parent.Run != fl.by.run) {
		k.f.wrong("runs", "run %s has the parent %v, want %v", fl.id, parent, fl.by)
	}
	if !k.f.docs[snapshotOf+fl.id].IsAbsent() && fl.state == runs.Running {
		k.f.w.count("steps of runs that have a snapshot")
	}
	k.compareTimer(fl)
	k.compareChildren(fl)
}

func outcomeOf(doc model.Value) string {
	if v := doc.Get("error"); !v.IsAbsent() {
		return "fails with " + storedFailure(v)
	}
	if v := doc.Get("result"); !v.IsAbsent() {
		return "returns " + v.String()
	}
	return ""
}

// compareTimer: a run has a timer if and only if it waits for a time, for the first one.
func (k *clerk) compareTimer(fl *flow) {
	at, want := int64(0), fl.next()
	if slot, set := k.f.agenda.timers[runTimer+fl.id]; set {
		at = k.f.agenda.bySlot[slot].NotBefore
	}
	if at != 0 {
		fl.lostTimer = false
	}
	if at != want && !fl.lostTimer {
		k.f.wrong("runs", "the timer of run %s is set to %d, want %d of %v", fl.id, at, want, fl.timers)
	}
}

// removed notes the runs that are gone.
func (k *clerk) removed() {
	for _, id := range slices.Sorted(maps.Keys(k.flows)) {
		if !k.f.docs[runs.Index].Get(id).IsAbsent() {
			continue
		}
		fl := k.flows[id]
		delete(k.flows, id)
		k.checkRemoved(fl)
	}
	k.checkRetained()
}

// checkRemoved: only what the retention has excluded is gone, and all of it.
func (k *clerk) checkRemoved(fl *flow) {
	k.f.w.count("runs that were removed")
	if keep := retained[fl.workflow]; keep == 0 || fl.state == runs.Running || len(fl.joined) > 0 {
		k.f.wrong("retention", "run %s of %s, which is %s, is gone; %d calls wait for it", fl.id, fl.workflow, fl.state, len(fl.joined))
	}
	for _, other := range k.flows { // any order: each on its own
		if other.workflow == fl.workflow && other.ended > 0 && other.ended < fl.ended && len(other.joined) == 0 {
			k.f.wrong("retention", "run %s, which ended at %d, is gone, and run %s is not, which ended at %d", fl.id, fl.ended, other.id, other.ended)
		}
	}
	for doc, v := range k.f.docs { // any order: each on its own
		if !v.IsAbsent() && (doc == runs.Doc(fl.id) || doc == childrenOf+fl.id || doc == snapshotOf+fl.id || strings.HasPrefix(doc, pagesOf+fl.id+"_")) {
			k.f.wrong("retention", "run %s is gone, and document %s is not", fl.id, doc)
		}
	}
}

// checkRetained: no more runs of a workflow are kept than it says, after one of them has started or ended.
func (k *clerk) checkRetained() {
	for _, touched := range k.touched { // any order: each on its own
		keep := retained[touched.workflow]
		if keep == 0 || k.f.w.plan.definitions(k.f.edition)[touched.workflow] == nil || len(touched.made) > 1 && touched.state == runs.Running {
			continue
		}
		n := 0
		for _, fl := range k.flows { // any order: a sum
			if fl.workflow == touched.workflow && fl.state != runs.Running && len(fl.joined) == 0 {
				n++
			}
		}
		if n > keep {
			k.f.wrong("retention", "%d runs of %s are kept, want at most %d", n, touched.workflow, keep)
		}
	}
}

// describe names a run for people.
func (fl *flow) describe() string {
	return fmt.Sprintf("run %s of %s, %s after %d steps, with %v open", fl.id, fl.workflow, fl.state, len(fl.made), slices.Sorted(maps.Keys(fl.pending)))
}
