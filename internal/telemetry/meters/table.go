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
	// Bounds are the upper bounds of a histogram's buckets.
	Bounds []float64
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
)

// Upper bounds of buckets: seconds, bytes, and numbers.
var (
	seconds = []float64{.0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60, 300}
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
	{Name: WorkerRuns, Kind: Counter, Unit: "{run}", Help: "Runs of computations, whether or not they were committed."},
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
