package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/internal/runlimit"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space/inspect"
	"github.com/settlehq/settle/status"
)

// processes judges the workers' figures.
func (j *judge) processes() {
	j.rewound()
	if j.fleet == nil {
		if j.unseen != nil {
			j.bad(Warning, CheckStuck, "the workers could not be asked what they do: "+j.unseen.Error(),
				"Spaces that stand still, workers' clocks and a full disk would not be noticed.", "Use a user with the rights of a reader: `settle permissions`.")
		}
		return
	}
	j.binaries()
	j.workerClocks()
	j.refusals()
	j.unstored()
	j.fullLanes()
	j.unserved()
	j.stuck()
	j.givenUp()
	j.computing()
	j.convergence()
	j.idempotency()
	j.backlog()
	j.timers()
	j.tasks()
	j.waking()
	j.watches()
	j.performers()
	j.unrunnable()
}

// fullLanes reports lanes without room for events that coordinators release. Two coordinators may report the same lane.
func (j *judge) fullLanes() {
	told := map[int]bool{}
	for i := range j.fleet.Coordinators {
		c := &j.fleet.Coordinators[i]
		for _, l := range c.Full {
			if c.State != fleet.Here || told[l.Partition] {
				continue
			}
			told[l.Partition] = true
			j.bad(Warning, CheckCoordinator, fmt.Sprintf("coordinator %s finds no room in the lane of partition %d since %s: %s from other spaces wait, the first one for space %s", c.ID, l.Partition, l.Since.Format(time.RFC3339), display.Count(l.Waiting, "event"), l.Space),
				"Events from other spaces to this partition wait, and so may later events in the same logs, for other partitions too. Nothing is lost.",
				"Raise the limit of the lane's stream (`nats stream edit`), or of the account, if storage reports it full. The events in a lane are not handled yet, or were handled within the horizon.")
		}
	}
}

func (j *judge) binaries() {
	if b := j.fleet.Binaries(); len(b) > 1 {
		j.bad(Warning, CheckVersions, "workers run different program files: "+strings.Join(b, ", "),
			"This is normal during an upgrade, but not for long: the behaviour of a space depends on the worker that serves it.",
			"Finish the upgrade, or go back.")
	}
}

func (j *judge) workerClocks() {
	for i := range j.fleet.Workers {
		m := &j.fleet.Workers[i]
		if m.Ahead.Abs() < skewWarning {
			continue
		}
		level, which := Warning, "ahead of"
		if m.Ahead.Abs() >= skewFailure {
			level = Failure
		}
		if m.Ahead < 0 {
			which = "behind"
		}
		j.bad(level, CheckClock, fmt.Sprintf("the clock of worker %s is %v %s this machine's", m.ID, m.Ahead.Abs().Round(time.Millisecond), which),
			"Timers, delayed events and jobs are due by the clock of the worker that serves their space. No order and no receipt depends on it.",
			"Let every machine keep time: chrony or systemd-timesyncd. If the servers' clocks are reported as well, it is this machine's clock that is off.")
	}
}

// rewound reports a store that has gone back: from the records in the deployment, and from the figures of members
// for rewinds without a record.
func (j *judge) rewound() {
	const lost = "The newest messages are lost, including acknowledged events. Events that are sent since are handled."
	const do = "Find out why: a power cut without fsync, a snapshot of the machine, older files. Senders that have the events can send them again. "
	var news []model.RewindNote
	for _, n := range j.Rewinds {
		if n.ShouldReport(j.Now) {
			news = append(news, n)
		}
	}
	by, texts := fleet.RewindText(news)
	for i := range by[:min(len(by), maxNamed)] {
		j.bad(Warning, CheckReach, fmt.Sprintf("the store has gone back to an earlier state; %s noticed it %s", by[i], texts[i]), lost,
			do+"`settle doctor --acknowledge` acknowledges this; otherwise it is reported for 7 days.")
	}
	if j.fleet == nil {
		return
	}
	for _, m := range slices.Concat(j.fleet.Workers, j.fleet.Coordinators) {
		if went := m.WentBack(j.Rewinds); went != "" {
			j.bad(Warning, CheckReach, fmt.Sprintf("the store has gone back to an earlier state; %s %s noticed it %s", m.Kind(), m.ID, went), lost,
				do+"This is reported until it is started again.")
		}
	}
}

// refusals reports the partitions and spaces that workers refuse because the store has lost data of them.
func (j *judge) refusals() {
	told := 0
	for i := range j.fleet.Workers {
		m := &j.fleet.Workers[i]
		if m.Figures == nil {
			continue
		}
		for k := range m.Figures.Losses {
			l := &m.Figures.Losses[k]
			if told++; told > maxNamed {
				continue
			}
			do := "Copy all streams first. Start a server that still has the messages, or restore the last backup of all streams; or continue without them: `settle accept-loss` lists what is lost."
			if l.Kind == model.LossOfCommit {
				do = "Nothing is lost. If a newer version has written it, upgrade; else `settle quarantine show " + l.Space + "` prints it: skip it, or restore it from a copy."
			}
			if l.Kind == model.LossOfState {
				do = "This cannot be accepted: restore the last backup of all streams, or move what is there to a new deployment (`settle export`, `settle import`)."
			}
			j.bad(Failure, CheckReach, fmt.Sprintf("worker %s refuses %s since %s: %s", m.ID, l.What(), l.Since.Format(time.RFC3339), l.Reason),
				"Its events wait, and are kept. Other partitions and spaces go on.", do)
		}
	}
	if told > maxNamed {
		j.bad(Failure, CheckReach, fmt.Sprintf("%d more are refused", told-maxNamed), "See above.", "`settle accept-loss` and `settle quarantine` list all.")
	}
}

// restart is the advice for the operator of a single server after its disk was full: nats-server keeps the
// error of a write until it is restarted.
const restart = "After a full or failed disk, restart the NATS server as well when there is room: it goes on refusing until then. After a limit that was reached, Settle goes on by itself."

// unstored reports a store that is full or fails, for whatever reason.
func (j *judge) unstored() {
	for i := range j.fleet.Workers {
		m := &j.fleet.Workers[i]
		if m.Figures != nil && m.Figures.Unstored != "" {
			j.bad(Failure, CheckStorage, "worker "+m.ID+" could not store something within the last minute: "+m.Figures.Unstored,
				"The store has no room, or fails. Events are refused, and spaces stop at their next commit; nothing that was acknowledged is lost.",
				"Free the disk, or raise the limit that the text names. "+restart)
			return // the other workers report the same
		}
	}
}

func (j *judge) unserved() {
	var numbers []string
	for _, p := range j.fleet.Partitions {
		if len(p.Served) == 0 && len(p.Silent) == 0 { // the partitions of workers that do not answer are reported with those workers
			numbers = append(numbers, fmt.Sprint(p.Number))
		}
	}
	if len(numbers) > 0 && len(j.fleet.Staying()) > 0 {
		j.bad(Warning, CheckWorkers, "partitions that no worker serves: "+clip(numbers),
			"Their events wait. This is normal for a moment after a worker has started or stopped.",
			"If it stays so, see the log of the worker that is to serve them: `settle fleet` names it.")
	}
}

// The age from which a blocked space is reported, and the age from which it is a failure.
const (
	stuckWarning = 30 * time.Second
	stuckFailure = 10 * time.Minute
)

// maxNamed is how many spaces that stand still get a finding of their own.
const maxNamed = 5

func (j *judge) stuck() {
	told := 0
	for i := range j.fleet.Stuck {
		s := &j.fleet.Stuck[i]
		age := j.fleet.At.Sub(s.Since)
		if age < stuckWarning && s.Cause != status.CauseNoProgram && s.Cause != status.CauseFailed && s.Cause != status.CauseLost {
			continue // it may continue by itself
		}
		if told++; told > maxNamed {
			continue
		}
		level := Warning
		if age >= stuckFailure {
			level = Failure
		}
		j.bad(level, CheckStuck, stuckText(s, j.fleet.At),
			"Events that come behind it in its space wait, and those of its partition count as not handled until it goes on.", stuckAdvice[s.Cause])
		if f := &j.findings[len(j.findings)-1]; f.Do == "" {
			f.Do = "See the log of " + s.Worker + "; `settle tree EVENT --space SPACE` shows the event."
		}
	}
	switch {
	case told > maxNamed:
		j.bad(Warning, CheckStuck, fmt.Sprintf("%d more stand still", max(j.fleet.StuckCount-maxNamed, told-maxNamed)), "See above.", "`settle fleet` names the 20 oldest.")
	case told == 0:
		j.ok(CheckStuck, "none for longer than %v", stuckWarning)
	}
}

// stuckText describes a blocked space. An event may have waited for its turn long before, and is then
// older than the standstill, so its age is reported separately.
func stuckText(s *fleet.Stuck, now time.Time) string {
	what := "space " + s.Space
	if s.Event != "" {
		what += " at event " + s.Event + " of stream " + s.Stream
	}
	text := fmt.Sprintf("%s, on %s, for %v: %s", what, s.Worker, now.Sub(s.Since).Round(time.Second), s.Reason)
	if !s.Stored.IsZero() && s.Since.Sub(s.Stored) >= stuckWarning {
		text += fmt.Sprintf("; the event was stored %v ago", now.Sub(s.Stored).Round(time.Second))
	}
	return text
}

// stuckAdvice is the advice for each status.Stuck.Cause.
var stuckAdvice = map[string]string{
	status.CauseNoProgram:   "Deploy a program for it, or a rule that says which it runs: `settle deploy`. Its events are kept.",
	status.CauseRunning:     "Code that does not return belongs in an action. Restart the worker to end it; if it hangs again, deploy a program that does not.",
	inspect.CauseDocument:   "See that the other space exists, that a worker serves it, and that it has a program that writes the document.",
	status.CauseUnsaved:     "See the log of its worker. A document that is too large has to become smaller; a full disk has to be freed, and its NATS server restarted then.",
	status.CauseUncommitted: "See cluster, replicas and storage above.",
	status.CauseLost:        "See what the process that ended last has written: a panic in a goroutine of the handler's own, os.Exit, or no memory. After three such attempts the event fails, and its space goes on.",
	status.CauseFailed:      "See the log of its worker, and the log and lanes of its partition above.",
}

// givenUp reports goroutines in code that did not return and was given up.
func (j *judge) givenUp() {
	fine := true
	for i := range j.fleet.Workers {
		m := &j.fleet.Workers[i]
		if m.Figures == nil || m.Figures.Abandoned == 0 {
			continue
		}
		fine = false
		level, why := Warning, fmt.Sprintf("Each holds the memory of a space, and a processor if it computes. At %d, no more is given up: then a space stands still whose code does not return.", runlimit.MaxAbandoned)
		if m.Figures.Abandoned >= runlimit.MaxAbandoned {
			level, why = Failure, "Each holds the memory of a space, and a processor if it computes. No more is given up: a space whose code does not return stands still."
		}
		j.bad(level, CheckGivenUp, fmt.Sprintf("worker %s has %s in handlers or nodes that were given up and have not returned", m.ID, display.Count(m.Figures.Abandoned, "goroutine")),
			why, "The log of "+m.ID+" and `settle dead` name the code. Let it return; restart the worker to be rid of what does not.")
	}
	if fine {
		j.ok(CheckGivenUp, "no handler or node that was given up has still to return")
	}
}

// computingWarning is how long computations may fail before that is reported.
const computingWarning = 10 * time.Second

// computing reports spaces with computations that are needed and fail.
func (j *judge) computing() {
	list, spaces, _ := j.fleet.FailingNodes()
	told := 0
	for i := range list {
		s := &list[i]
		age := j.fleet.At.Sub(s.Since)
		if age < computingWarning {
			spaces--
			continue
		}
		if told++; told > maxNamed {
			continue
		}
		node := "NODE"
		if len(s.Nodes) > 0 {
			node = s.Nodes[0].Node
		}
		j.bad(Warning, CheckComputing, fmt.Sprintf("space %s, for %v: %s", s.Space, age.Round(time.Second), fleet.FailingNodesText(s)),
			"Each document that a computation would make, and what follows from it, stays as it was before. It runs again when something changes that it reads.",
			"`settle why "+s.Space+" "+node+"` shows the error and what it reads; `settle graph "+s.Space+"` marks what follows from it. Send an event that corrects what it reads, or deploy a program that computes it.")
	}
	switch {
	case spaces > maxNamed:
		j.bad(Warning, CheckComputing, fmt.Sprintf("computations of %s fail", display.Count(spaces-maxNamed, "more space")), "See above.", "See above.")
	case told == 0:
		j.ok(CheckComputing, "no computation that something needs fails, for longer than %v", computingWarning)
	}
}

// unsettledWarning is how long nodes may not converge before that is reported.
const unsettledWarning = 10 * time.Second

// convergence reports spaces in which nodes run again and again.
func (j *judge) convergence() {
	found := 0
	for i := range j.fleet.Workers {
		m := &j.fleet.Workers[i]
		if m.Figures == nil {
			continue
		}
		for k := range m.Figures.Unsettled {
			u := &m.Figures.Unsettled[k]
			age := j.fleet.At.Sub(u.Since)
			if age < unsettledWarning {
				continue
			}
			if found++; found > maxNamed {
				continue
			}
			if len(u.Through) > 0 {
				j.bad(Warning, CheckConvergence, fmt.Sprintf("over several spaces, as %s reports, for %v: %s", m.ID, age.Round(time.Second), u.Round()),
					"A derived document follows from itself through other spaces, and its value differs each time. Each step is held back, for up to 30 s, so that the documents are late, and is a commit.",
					"Let one of these spaces compute its document from something else, or to a value that comes to rest. `settle history "+strings.Replace(u.Through[0], "/", " ", 1)+"` shows the values.")
				continue
			}
			text := fmt.Sprintf("space %s, on %s, for %v: %s", u.Space, m.ID, age.Round(time.Second), cmp.Or(u.Round(), strings.Join(u.Nodes, ", ")))
			j.bad(Warning, CheckConvergence, text, "Each run changes what makes another one run. They are held back for up to 30 s at a time, so that documents are late, and each round is a commit.",
				"Let a computation write nothing that it reads, directly or through others. `settle graph "+u.Space+"` marks the circle; `settle why "+u.Space+" "+u.Nodes[0]+"` shows what changes.")
		}
	}
	switch {
	case found > maxNamed:
		j.bad(Warning, CheckConvergence, fmt.Sprintf("%d more spaces do not converge", found-maxNamed), "See above.", "See above.")
	case found == 0:
		j.ok(CheckConvergence, "no computations that run again and again, for longer than %v", unsettledWarning)
	}
}

// idempotency reports nodes that were found to have another result when they were repeated. There is no good news: it is not always looked for.
func (j *judge) idempotency() {
	found := 0
	for i := range j.fleet.Workers {
		m := &j.fleet.Workers[i]
		if m.Figures == nil {
			continue
		}
		for k := range m.Figures.Differing {
			d := &m.Figures.Differing[k]
			if found++; found > maxNamed {
				continue
			}
			where := "space " + d.Space
			if d.Spaces > 1 {
				where += fmt.Sprintf(" and %d more", d.Spaces-1)
			}
			j.bad(Warning, CheckIdempotency, fmt.Sprintf("%s, on %s: %s", where, m.ID, d.Text),
				"A run may be repeated, and skipped if nothing has changed that it reads: what follows from chance, a clock or a variable outside of documents is another value on another worker.",
				"Let the function depend on what it reads alone. `settle why "+d.Space+" "+d.Node+" --check` compares its runs; the finding ends when the space is loaded again.")
		}
	}
	if found > maxNamed {
		j.bad(Warning, CheckIdempotency, fmt.Sprintf("%d more nodes are not idempotent", found-maxNamed), "See above.", "See above.")
	}
}

// failingWarning is for how long attempts at a task may fail before that is reported.
const failingWarning = 30 * time.Second

// tasks reports actions whose tasks fail. What a program handles itself is no fault.
func (j *judge) tasks() {
	list, unnamed := j.fleet.Failing()
	told := 0
	var handled []string
	for i := range list {
		a := &list[i]
		text := "space " + a.Space + ": " + fleet.FailingText(a)
		if a.GivenUp > 0 && a.Handled {
			handled = append(handled, text)
			continue
		}
		if a.GivenUp == 0 && j.fleet.At.Sub(a.Since) < failingWarning {
			continue // it may pass by itself
		}
		if told++; told > maxNamed {
			continue
		}
		why, do := "What follows from its result waits.", "Repair what the action calls: the task is done then. `settle get "+a.Space+" "+a.Action+"` has the tasks; a handler can cancel one (`Cancel`)."
		if a.GivenUp > 0 {
			why, do = "Nothing follows from them: the program has no function for the ends of these tasks.", "`settle get "+a.Space+" "+a.Action+"` has the tasks for as long as the action keeps them; a handler can start them again (`Forget`, `Start`)."
		}
		j.bad(Warning, CheckTasks, text, why, do)
	}
	switch {
	case told+unnamed > maxNamed:
		j.bad(Warning, CheckTasks, fmt.Sprintf("%d more actions of spaces fail", told+unnamed-min(told, maxNamed)), "See above.", "The pages of their spaces, in the console, list their tasks.")
	case told > 0:
	case len(handled) > 0:
		j.ok(CheckTasks, "none fails that its program does not handle; handled within the last hour: %s", strings.Join(handled[:min(len(handled), maxNamed)], "; "))
	default:
		j.ok(CheckTasks, "none fails")
	}
}

// oldBacklog is how long the oldest event of a partition may wait before that is reported.
const oldBacklog = 30 * time.Second

func (j *judge) backlog() {
	fine := true
	for i := range j.fleet.Partitions {
		p := &j.fleet.Partitions[i]
		age := j.fleet.At.Sub(p.Oldest)
		if p.Oldest.IsZero() || age < oldBacklog {
			continue
		}
		fine = false
		text := fmt.Sprintf("partition %d: %s since the first that is not known to be handled, %v ago", p.Number, display.Count(int(p.Events), "event"), age.Round(time.Second))
		if p.Busiest != "" {
			text += fmt.Sprintf("; %d of them of space %s", p.BusiestEvents, p.Busiest)
		}
		if p.BusiestEvents > p.Events/2 {
			j.bad(Warning, CheckBacklog, text, "A space handles one event at a time, in order: this one receives more than it handles, or is stuck. The other spaces of the partition continue.",
				"If it is listed as stuck above, see there first. More workers do not help one space: send it less, make its handlers faster, or divide its work among several spaces.")
			continue
		}
		j.bad(Warning, CheckBacklog, text,
			"Events are handled late, or one space holds back the saved position of the others.",
			"If spaces are listed as stuck above, see there first. Otherwise events arrive faster than they are handled: add workers, or send less; `settle fleet` shows whether the number decreases.")
	}
	switch unread := slices.ContainsFunc(j.fleet.Partitions, func(p fleet.Partition) bool { return p.Unread != "" }); {
	case fine && unread:
		j.ok(CheckBacklog, "no event waits for longer than %v in the partitions that can be read", oldBacklog)
	case fine:
		j.ok(CheckBacklog, "no event waits for longer than %v", oldBacklog)
	}
}
