// Package meters has the metrics of Settle: a table of them, and what registers their instruments. It links the
// OpenTelemetry API alone; internal/telemetry/export sets up readers and exporters for the commands.
//
// No attribute names a space, a document, an event or a worker: each has the values in the table and no others.
package meters

import (
	"strings"

	"github.com/settlehq/settle/model"
)

// Kind is how an instrument adds up.
type Kind uint8

const (
	// Counter only grows while the process runs.
	Counter Kind = iota
	// Gauge is a present value.
	Gauge
	// Histogram counts values by size.
	Histogram
)

func (k Kind) String() string { return [...]string{"counter", "gauge", "histogram"}[k] }

// Instrument is a metric.
type Instrument struct {
	Name string
	Kind Kind
	// Unit is that of the Unified Code for Units of Measure; what is counted stands in braces.
	Unit string
	Help string
	// Attribute distinguishes the Values, "" for none.
	Attribute string
	Values    []string
	// Also are more attributes, of a histogram.
	Also []Attribute
	// Bounds are the upper bounds of a histogram's buckets.
	Bounds []float64
}

// Attribute is an attribute with the values that it may have, as an instrument has more than one.
type Attribute struct{ Name, Values string }

// Attributes returns the names of all attributes.
func (i *Instrument) Attributes() (names []string) {
	if i.Attribute != "" {
		names = append(names, i.Attribute)
	}
	for _, a := range i.Also {
		names = append(names, a.Name)
	}
	return names
}

// Prometheus returns the name under which Prometheus has the metric.
func (i *Instrument) Prometheus() string {
	name := strings.ReplaceAll(i.Name, ".", "_")
	switch i.Unit {
	case "s":
		name += "_seconds"
	case "By":
		name += "_bytes"
	}
	if i.Kind == Counter {
		name += "_total"
	}
	return name
}

// The names of the metrics of a worker.
const (
	WorkerEvents             = "settle.worker.events"
	WorkerEventDuration      = "settle.worker.event.duration"
	WorkerCommits            = "settle.worker.commits"
	WorkerCommitDuration     = "settle.worker.commit.duration"
	WorkerCommitSize         = "settle.worker.commit.size"
	WorkerCommitEvents       = "settle.worker.commit.events"
	WorkerAppendsRefused     = "settle.worker.appends.refused"
	WorkerRuns               = "settle.worker.runs"
	WorkerSpaces             = "settle.worker.spaces"
	WorkerActivations        = "settle.worker.activations"
	WorkerActivationDuration = "settle.worker.activation.duration"
	WorkerEvictions          = "settle.worker.evictions"
	WorkerPartitions         = "settle.worker.partitions"
	WorkerTakeoverDuration   = "settle.worker.takeover.duration"
	WorkerEventsWaiting      = "settle.worker.events.waiting"
	WorkerBacklog            = "settle.worker.backlog"
	WorkerSpacesStuck        = "settle.worker.spaces.stuck"
	WorkerSpacesLate         = "settle.worker.spaces.late"
	WorkerLosses             = "settle.worker.losses"
	WorkerRewinds            = "settle.worker.rewinds"
	WorkerWatches            = "settle.worker.watches"
	WorkerWatchesRefused     = "settle.worker.watches.refused"
	WorkerLeases             = "settle.worker.leases"
	WorkerCodeAbandoned      = "settle.worker.code.abandoned"
	WorkerUnrunnable         = "settle.worker.programs.unrunnable"
	WorkerEventsParked       = "settle.worker.events.parked"
	WorkerEventsParkedAge    = "settle.worker.events.parked.age"
	WorkerEventsWaitingAge   = "settle.worker.events.waiting.age"
	WorkerEventsRetried      = "settle.worker.events.retried"
	WorkerRunsDiffering      = "settle.worker.runs.differing"
	WorkerIngressRefusals    = "settle.worker.ingress.refusals"
	WorkerAppendsInDoubt     = "settle.worker.appends.in_doubt"
	WorkerPassDuration       = "settle.worker.pass.duration"
	WorkerHeldBack           = "settle.worker.nodes.held_back"
	WorkerUnsettled          = "settle.worker.spaces.unsettled"
	WorkerSpacesFailing      = "settle.worker.spaces.failing"
	WorkerNodesFailing       = "settle.worker.nodes.failing"
	WorkerQuarantined        = "settle.worker.spaces.quarantined"
	WorkerReadDuration       = "settle.worker.read.duration"
	WorkerTasksPending       = "settle.worker.tasks.pending"
	WorkerTasksLate          = "settle.worker.tasks.late"
	WorkerTasksStarted       = "settle.worker.tasks.started"
	WorkerAttemptDuration    = "settle.worker.task.attempt.duration"
	WorkerTaskOffers         = "settle.worker.task.offers"
	WorkerHostedSteps        = "settle.worker.hosted.steps"
	WorkerHostedMemory       = "settle.worker.hosted.memory"
	WorkerTimers             = "settle.worker.timers"
	WorkerTimerLateness      = "settle.worker.timer.lateness"
	WorkflowRuns             = "settle.workflow.runs"
	WorkflowSteps            = "settle.workflow.steps"
	WorkflowSchedules        = "settle.workflow.schedules"
)

// The names of the metrics of a client and of a gateway.
const (
	ClientSendDuration = "settle.client.send.duration"
	ClientCallDuration = "settle.client.call.duration"
	GatewayDuration    = "http.server.request.duration"
	GatewayRefusals    = "settle.gateway.refusals"
)

// Results of runs, attempts, offers and reads, as values of attributes.
const (
	Changed    = "changed"
	Unchanged  = "unchanged"
	Incomplete = "incomplete"
	Failed     = "failed"
	Done       = "done"
	Retried    = "retried"
	CutOff     = "cut_off"
	Taken      = "taken"
	Untaken    = "untaken"
	Current    = "current"
	Stale      = "stale"
	Started    = "started"
	Cancelled  = "cancelled"
	Skipped    = "skipped"
)

// Why a node is held back, and why an event is refused before its handler.
const (
	ByGate    = "gate"
	ByBudget  = "budget"
	ByRule    = "rule"
	ByContent = "content"
)

// The names of the metrics of a coordinator.
const (
	CoordinatorReleases      = "settle.coordinator.releases"
	CoordinatorRepeated      = "settle.coordinator.releases.repeated"
	CoordinatorNotices       = "settle.coordinator.notices"
	CoordinatorDeadLetters   = "settle.coordinator.dead_letters"
	CoordinatorUnreleased    = "settle.coordinator.unreleased"
	CoordinatorUnreleasedAge = "settle.coordinator.unreleased.age"
	CoordinatorRewinds       = "settle.coordinator.rewinds"
)

// The attributes.
const (
	outcome = "settle.outcome"
	state   = "settle.state"
	result  = "settle.result"
	reason  = "settle.reason"
)

// Upper bounds of buckets: seconds, bytes, and numbers.
var (
	seconds = []float64{.0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60, 300}
	short   = []float64{.00001, .00002, .00005, .0001, .0002, .0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 5}
	bytes   = []float64{256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20}
	numbers = []float64{0, 1, 2, 5, 10, 20, 50, 100, 200, 500}
)

// Worker are the metrics of a worker.
var Worker = []Instrument{
	{Name: WorkerEvents, Kind: Counter, Unit: "{event}", Help: "Events that commits of this worker have ended, by outcome.", Attribute: outcome, Values: outcomes()},
	{Name: WorkerEventDuration, Kind: Histogram, Unit: "s", Help: "Time from when an event was stored in its lane to when the commit that ended it was accepted. Events that waited for a time of their own do not count, nor does the time in the sender.", Bounds: seconds},
	{Name: WorkerCommits, Kind: Counter, Unit: "{commit}", Help: "Commits that the log has accepted, takeovers of spaces included."},
	{Name: WorkerCommitDuration, Kind: Histogram, Unit: "s", Help: "Time from the request to append a commit to the answer of the log.", Bounds: seconds},
	{Name: WorkerCommitSize, Kind: Histogram, Unit: "By", Help: "Size of the accepted commits.", Bounds: bytes},
	{Name: WorkerCommitEvents, Kind: Histogram, Unit: "{event}", Help: "Events that one commit has ended.", Bounds: numbers},
	{Name: WorkerAppendsRefused, Kind: Counter, Unit: "{commit}", Help: "Commits that the log has refused because another runtime had appended first. Some are normal when partitions move, or with attached runtimes."},
	{Name: WorkerRuns, Kind: Counter, Unit: "{run}", Help: "Runs of computations, whether or not they were committed. One that is unchanged is a cut-off: nothing runs because of it. One that is incomplete was wasted: it waits for a document of another space, or for room in a commit, and runs again.", Attribute: result, Values: []string{Changed, Unchanged, Incomplete, Failed}},
	{Name: WorkerSpaces, Kind: Gauge, Unit: "{space}", Help: "Spaces in memory, being loaded, and waiting for their turn to be loaded.", Attribute: state, Values: []string{"loaded", "loading", "queued"}},
	{Name: WorkerActivations, Kind: Counter, Unit: "{space}", Help: "How often a space was loaded."},
	{Name: WorkerActivationDuration, Kind: Histogram, Unit: "s", Help: "Time from when the loading of a space began to when its takeover was accepted.", Bounds: seconds},
	{Name: WorkerEvictions, Kind: Counter, Unit: "{space}", Help: "How often a space left the memory."},
	{Name: WorkerPartitions, Kind: Gauge, Unit: "{partition}", Help: "Partitions that the worker serves, hands over, and waits for.", Attribute: state, Values: []string{"serving", "leaving", "waiting"}},
	{Name: WorkerTakeoverDuration, Kind: Histogram, Unit: "s", Help: "Time from when the worker learned that it owns a partition until it served it.", Bounds: seconds},
	{Name: WorkerEventsWaiting, Kind: Gauge, Unit: "{event}", Help: "Events that were read from the lanes and have not ended."},
	{Name: WorkerBacklog, Kind: Gauge, Unit: "By", Help: "Size of the events that wait in memory for their spaces."},
	{Name: WorkerSpacesStuck, Kind: Gauge, Unit: "{space}", Help: "Spaces that have held back the saved position of their partition for more than 5 s. `settle fleet` names them and the cause."},
	{Name: WorkerSpacesLate, Kind: Gauge, Unit: "{space}", Help: "Spaces with timers, jobs or delayed events that were due more than 1 s ago."},
	{Name: WorkerLosses, Kind: Gauge, Unit: "{loss}", Help: "Partitions and spaces that the worker refuses to serve because the store has lost some of their data (`settle doctor`)."},
	{Name: WorkerRewinds, Kind: Gauge, Unit: "{stream}", Help: "Streams that have gone back to an earlier state since the worker started."},
	{Name: WorkerWatches, Kind: Gauge, Unit: "{watch}", Help: "Open watches of documents."},
	{Name: WorkerWatchesRefused, Kind: Counter, Unit: "{watch}", Help: "Watches that were refused because too many were open."},
	{Name: WorkerLeases, Kind: Gauge, Unit: "{lease}", Help: "Leases by which documents are observed."},
	{Name: WorkerCodeAbandoned, Kind: Gauge, Unit: "{goroutine}", Help: "Goroutines in handlers or computations that were given up and have not returned."},
	{Name: WorkerUnrunnable, Kind: Gauge, Unit: "{version}", Help: "Deployed versions of programs that cannot run on this worker."},
	{Name: WorkerEventsParked, Kind: Gauge, Unit: "{event}", Help: "Events whose handlers wait for documents that are not up to date, or have not arrived from another space. Of one space there is at most one."},
	{Name: WorkerEventsParkedAge, Kind: Gauge, Unit: "s", Help: "For how long the oldest of them has waited, 0 if there is none."},
	{Name: WorkerEventsWaitingAge, Kind: Gauge, Unit: "s", Help: "Age of the oldest event that was read from a lane and has not ended, 0 if there is none. Events that wait for a time of their own do not count."},
	{Name: WorkerRunsDiffering, Kind: Counter, Unit: "{run}", Help: "Runs of computations, and of handlers in tests, that had another result when they were repeated, or than an earlier run that had read the same: the function is not idempotent."},
	{Name: WorkerEventsRetried, Kind: Counter, Unit: "{attempt}", Help: "Attempts at events that have ended in an error that another attempt follows."},
	{Name: WorkerIngressRefusals, Kind: Counter, Unit: "{event}", Help: "Events that were refused before their handler, in the lane or over HTTP, because no rule allows them to their sender, or because of what they contain (in the lane).", Attribute: reason, Values: []string{ByRule, ByContent}},
	{Name: WorkerAppendsInDoubt, Kind: Counter, Unit: "{commit}", Help: "Commits whose acknowledgement was lost, so that the log had to be asked whether they are in it."},
	{Name: WorkerPassDuration, Kind: Histogram, Unit: "s", Help: "Time of a pass of a space: the handlers that were called and the computations that were run in one go.", Bounds: short},
	{Name: WorkerHeldBack, Kind: Counter, Unit: "{node}", Help: "How often a node that was due was held back: by its gate (debounce, throttle, schedule), or because its runs do not converge and its budget is used up.", Attribute: reason, Values: []string{ByGate, ByBudget}},
	{Name: WorkerUnsettled, Kind: Gauge, Unit: "{space}", Help: "Spaces in which computations do not converge (`settle fleet` names them)."},
	{Name: WorkerSpacesFailing, Kind: Gauge, Unit: "{space}", Help: "Spaces with a computation that is needed and whose last run has failed (`settle doctor` names them)."},
	{Name: WorkerNodesFailing, Kind: Gauge, Unit: "{node}", Help: "Computations that are needed and whose last run has failed: their documents keep the values that they had before."},
	{Name: WorkerQuarantined, Kind: Gauge, Unit: "{space}", Help: "Spaces that are set aside because a commit of them cannot be read (`settle quarantine`)."},
	{Name: WorkerReadDuration, Kind: Histogram, Unit: "s", Help: "Time of a confirmed read of a document, by whether its answer was up to date.", Attribute: result, Values: []string{Current, Stale, Failed}, Bounds: seconds},
	{Name: WorkerTasksPending, Kind: Gauge, Unit: "{task}", Help: "Tasks of actions and inputs that are to be performed, of the spaces in memory."},
	{Name: WorkerTasksLate, Kind: Gauge, Unit: "{space}", Help: "Spaces in memory with a task that has been due for more than 1 s and has no attempt, although its action has room for one."},
	{Name: WorkerTasksStarted, Kind: Counter, Unit: "{task}", Help: "Tasks that handlers have started, whether or not they were committed."},
	{Name: WorkerAttemptDuration, Kind: Histogram, Unit: "s", Help: "Time of an attempt at a task, by how it has ended; another attempt follows one that is retried. An attempt is cut off if its space moves, or its task is cancelled.", Attribute: outcome, Values: []string{Done, Failed, Retried, CutOff}, Bounds: seconds},
	{Name: WorkerTaskOffers, Kind: Counter, Unit: "{offer}", Help: "Offers of tasks to performers. One that is untaken is repeated: no performer was there, or had room.", Attribute: result, Values: []string{Taken, Untaken}},
	{Name: WorkerHostedSteps, Kind: Counter, Unit: "{step}", Help: "Steps that the runs of deployed programs have executed. A run is ended at its limit (--starlark-steps)."},
	{Name: WorkerHostedMemory, Kind: Counter, Unit: "By", Help: "Memory that the runs of deployed programs have allocated, as their limit counts it (--starlark-memory). Most of it is free again."},
	{Name: WorkerTimers, Kind: Gauge, Unit: "{event}", Help: "Timers, jobs and delayed events that wait for their time, of the spaces in memory."},
	{Name: WorkerTimerLateness, Kind: Histogram, Unit: "s", Help: "Time from when a timer, a job or a delayed event was due to when its handling ended.", Bounds: seconds},
	{Name: WorkflowRuns, Kind: Counter, Unit: "{run}", Help: "Runs of workflows that were started, and that have ended.", Attribute: result, Values: []string{Started, Done, Failed, Cancelled}},
	{Name: WorkflowSteps, Kind: Counter, Unit: "{step}", Help: "Steps of workflows that perform an action or run a workflow, at each attempt.", Attribute: result, Values: []string{Started, Done, Failed}},
	{Name: WorkflowSchedules, Kind: Counter, Unit: "{run}", Help: "Runs that schedules have started, and times that they have skipped.", Attribute: result, Values: []string{Started, Skipped}},
}

// Notes are the counters of what libraries note of their transactions (space.Note): the kind of the note, and the value of the counter.
var Notes = []struct{ Kind, Name, Value string }{
	{"workflow.run.started", WorkflowRuns, Started},
	{"workflow.run.done", WorkflowRuns, Done},
	{"workflow.run.failed", WorkflowRuns, Failed},
	{"workflow.run.cancelled", WorkflowRuns, Cancelled},
	{"workflow.step.started", WorkflowSteps, Started},
	{"workflow.step.done", WorkflowSteps, Done},
	{"workflow.step.failed", WorkflowSteps, Failed},
	{"workflow.schedule.started", WorkflowSchedules, Started},
	{"workflow.schedule.skipped", WorkflowSchedules, Skipped},
}

// Client are the metrics of a client in Go.
var Client = []Instrument{
	{Name: ClientSendDuration, Kind: Histogram, Unit: "s", Help: "Time from the request to store an event to the answer of its lane. A duplicate was stored before.", Attribute: result, Values: []string{"stored", "duplicate", Failed}, Bounds: seconds},
	{Name: ClientCallDuration, Kind: Histogram, Unit: "s", Help: "Time from when an event was sent to when its receipt arrived, of calls, by the outcome of the event.", Attribute: outcome, Values: outcomes(), Bounds: seconds},
}

// Gateway are the metrics of the HTTP gateway of a worker.
var Gateway = []Instrument{
	{Name: GatewayDuration, Kind: Histogram, Unit: "s", Help: "Time of a request for a document, or to send an event. Watches are no part of it.", Bounds: seconds, Also: []Attribute{
		{"http.request.method", "GET, POST"}, {"http.route", "one of each kind of request"}, {"http.response.status_code", "that of HTTP"},
	}},
	{Name: GatewayRefusals, Kind: Counter, Unit: "{request}", Help: "Requests that were refused before they were read: the name of the host is not configured, pages of the origin may not read, or there is no valid token.", Attribute: reason, Values: []string{"host", "origin", "token"}},
}

// Coordinator are the metrics of a coordinator.
var Coordinator = []Instrument{
	{Name: CoordinatorReleases, Kind: Counter, Unit: "{event}", Help: "Committed sends that this coordinator has put into the lanes of their targets."},
	{Name: CoordinatorRepeated, Kind: Counter, Unit: "{event}", Help: "Those of them that were there already. They are normal with several coordinators, and after a restart."},
	{Name: CoordinatorNotices, Kind: Counter, Unit: "{event}", Help: "Notices to the senders of events that were refused, rejected, cancelled or expired."},
	{Name: CoordinatorDeadLetters, Kind: Counter, Unit: "{event}", Help: "Dead letters that this coordinator has written or found written."},
	{Name: CoordinatorUnreleased, Kind: Gauge, Unit: "{commit}", Help: "Commits that the coordinator has read and not completely released."},
	{Name: CoordinatorUnreleasedAge, Kind: Gauge, Unit: "s", Help: "For how long the oldest release in progress has been tried, 0 if there is none."},
	{Name: CoordinatorRewinds, Kind: Gauge, Unit: "{stream}", Help: "Streams that have gone back to an earlier state since the coordinator started."},
}

func outcomes() (names []string) {
	for _, o := range model.Outcomes {
		names = append(names, string(o))
	}
	return names
}
