package status

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// Figures is the answer of a worker to a request at its Endpoint.
type Figures struct {
	Worker   string    `json:"worker"`
	Life     string    `json:"life"`
	Since    time.Time `json:"since"`
	Commits  uint64    `json:"commits"`
	Receipts uint64    `json:"receipts"`
	// Failed counts the receipts whose outcome is not "handled", Refused the refused appends.
	Failed  uint64 `json:"failed,omitzero"`
	Refused uint64 `json:"refused"`
	// Awake spaces are in memory, Loading of them are being loaded, and Queued ones wait
	// for that. Backlog is the size of the waiting events in bytes.
	Awake      int         `json:"awake"`
	Loading    int         `json:"loading"`
	Queued     int         `json:"queued"`
	Backlog    int64       `json:"backlog_bytes"`
	Partitions []Partition `json:"partitions"`
	// Stuck are the spaces that have held back the saved position of their partition for longest, at most 20;
	// StuckCount is the number of all such spaces.
	Stuck      []Stuck `json:"stuck,omitzero"`
	StuckCount int     `json:"stuck_count,omitzero"`
	// Next are the first few spaces that wait to be loaded, in order. Limit is how many may be
	// in memory, 0 for any number.
	Next  []string `json:"next,omitzero"`
	Limit int      `json:"limit,omitzero"`
	// Busiest are the spaces with most waiting events, and Late those with timers, jobs or delayed events
	// that are due but not handled, the oldest first, at most 5 of each. LateCount is the number of all late
	// spaces.
	Busiest   []Load `json:"busiest,omitzero"`
	Late      []Late `json:"late,omitzero"`
	LateCount int    `json:"late_count,omitzero"`
	// Unsettled are the spaces in which nodes do not converge, those that have lasted for longest first, at most 20; UnsettledCount is the number
	// of all of them.
	Unsettled      []Unsettled `json:"unsettled,omitzero"`
	UnsettledCount int         `json:"unsettled_count,omitzero"`
	// Differing are the nodes that were found not to be idempotent, those of most spaces first, at most 20; DifferingCount is the number of all of them.
	Differing      []Differing `json:"differing,omitzero"`
	DifferingCount int         `json:"differing_count,omitzero"`
	// FailingNodes are the spaces with nodes that are needed and fail, those that have for longest first, at most 20. FailingSpaceCount is the number
	// of all such spaces, FailingNodeCount that of all such nodes.
	FailingNodes      []FailingNodes `json:"failing_nodes,omitzero"`
	FailingSpaceCount int            `json:"failing_space_count,omitzero"`
	FailingNodeCount  int            `json:"failing_node_count,omitzero"`
	// Failing are the actions whose tasks fail, those that have failed last first, at most 20; FailingCount is the number of all of them.
	Failing      []FailingAction `json:"failing,omitzero"`
	FailingCount int             `json:"failing_count,omitzero"`
	// Missed are the newest jobs known to this worker whose times were passed over because no worker ran when
	// they were due.
	Missed []Missed `json:"missed,omitzero"`
	// Disallowed are the last events that no rule allows and whose space does not exist, which leave no receipt: at most 20, the newest first, one for
	// each principal, space and stream. DisallowedCount is the number of all since the worker has started; one that is found again by
	// another worker counts there, too.
	Disallowed      []Disallowed `json:"disallowed,omitzero"`
	DisallowedCount uint64       `json:"disallowed_count,omitzero"`
	// Denials are the last events that no rule allows and that were refused, in the same form, at most 20 that have ended so in their space, which exists, and 20
	// that the gateway of the worker has refused: those are not stored, and have no Event.
	// DenialCount is the number of all since the worker has started.
	Denials     []Disallowed `json:"denials,omitzero"`
	DenialCount uint64       `json:"denial_count,omitzero"`
	// Unperformed are the actions whose tasks no performer takes, those that have waited for longest first, at most 20; UnperformedCount is the
	// number of all.
	Unperformed      []Unperformed `json:"unperformed,omitzero"`
	UnperformedCount int           `json:"unperformed_count,omitzero"`
	// Watches are the live queries that the worker serves, and Unrunnable the deployed versions that
	// cannot run here, each with the spaces assigned to it, the version that they run instead, and the reason.
	Watches    Watches  `json:"watches,omitzero"`
	Unrunnable []string `json:"unrunnable,omitzero"`
	// Abandoned counts goroutines in handlers or nodes that were given up and have not returned.
	Abandoned int `json:"abandoned,omitzero"`
	// Losses are the partitions and spaces that the worker refuses to serve because the store has lost some
	// of their data, at most 20; LossCount is the number of all.
	Losses    []Loss `json:"losses,omitzero"`
	LossCount int    `json:"loss_count,omitzero"`
	// Now is the worker's clock at the time of the answer; Binary identifies its program file.
	Now time.Time `json:"now,omitzero"`
	// Unstored is the reason why the store failed to store something within the last minute, as far as the
	// store gave one, or "" if nothing failed.
	Unstored string `json:"unstored,omitzero"`
	// Denied is the last permissions violation of the worker's NATS user within the last ten minutes, or "".
	Denied string `json:"denied,omitzero"`
	Binary string `json:"binary,omitzero"`
	// Rewinds are the streams that have gone back to an earlier state since the worker started, each with the
	// time of its last detection, the newest first, at most 20; RewindCount is the number of all.
	Rewinds     []model.Rewind `json:"rewinds,omitzero"`
	RewindCount int            `json:"rewind_count,omitzero"`
	// PassedOver are the messages that the worker has passed over because they cannot be read, by stream, at most 20.
	PassedOver []model.PassedOver `json:"passed_over,omitzero"`
	// Rewound is the newest rewind, for readers of earlier versions.
	Rewound model.Rewind `json:"rewound,omitzero"`
}

// Disallowed are events of a principal, "" for none, of one stream to one space, which no rule allows.
type Disallowed struct {
	Principal string `json:"principal,omitzero"`
	Space     string `json:"space"`
	Stream    string `json:"stream"`
	// Count is how many there were, and Event the id of the last one, At when the worker has found that.
	Count  uint64    `json:"count"`
	Event  string    `json:"event"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
}

// Partition is what a worker reports of one partition.
type Partition struct {
	Partition int `json:"partition"`
	// State is serving, leaving (the partition is being handed over) or waiting (for another worker to hand
	// it over); Since is when the state began.
	State string    `json:"state"`
	Since time.Time `json:"since"`
	// Took is the time from when this worker learned that it owns the partition until it served it.
	Took time.Duration `json:"took_ns"`
	// Events were read but not handled; Unsaved spaces have work to do or changes to save.
	Awake   int `json:"awake"`
	Events  int `json:"events"`
	Unsaved int `json:"unsaved"`
	// Read and Saved are lane sequences: up to which events were read, and from which the next owner reads.
	// Aside is the number of spaces with unfinished events before Saved; the next owner's hosts read those
	// events themselves.
	Read  uint64 `json:"read"`
	Saved uint64 `json:"saved"`
	Aside int    `json:"aside,omitzero"`
}

// Question is what a request at an Endpoint may ask for instead of the Figures. A worker of an earlier version answers with its Figures.
type Question struct {
	Stuck *StuckQuery `json:"stuck,omitzero"`
}

// StuckQuery asks for a page of all stuck spaces of a worker, in the order of the time since which they have been stuck, and of their names: those behind a
// space that has been stuck since a time. Its zero value asks for the first page.
type StuckQuery struct {
	Since time.Time `json:"since,omitzero"`
	Space string    `json:"space,omitzero"`
}

// Behind reports whether s is behind the place of the query.
func (q *StuckQuery) Behind(s *Stuck) bool {
	return s.Since.After(q.Since) || s.Since.Equal(q.Since) && s.Space > q.Space
}

// StuckPage is the answer to a StuckQuery. Stored times of events are left out.
type StuckPage struct {
	// Paged is set: an answer of an earlier version, which has Figures, lacks it.
	Paged bool    `json:"paged"`
	Stuck []Stuck `json:"stuck"`
	// More reports that there are more behind the last one.
	More bool `json:"more,omitzero"`
}

// Endpoint returns the endpoint at which a worker answers with its Figures.
func Endpoint(id string) string { return "worker-" + id }

// Describe fills in the figures of the process that do not depend on its partitions, and what its bus knows
// about the store.
func (f *Figures) Describe(self model.Member, bus port.Client, now time.Time) {
	f.Worker, f.Life, f.Since = self.ID, self.Life, self.Since
	f.Now, f.Binary = now.UTC(), binary()
	if says, can := bus.(refusals); can {
		if at, why := says.Refusal(); time.Since(at) < unstoredFor {
			f.Unstored = why
		}
	}
	noticed := port.NoticedBy(bus)
	f.Denied, f.Rewinds, f.RewindCount, f.PassedOver = noticed.Denied, noticed.Rewinds, noticed.RewindCount, noticed.PassedOver
	if len(f.Rewinds) > 0 {
		f.Rewound = f.Rewinds[0]
	}
}

// ServiceName is the service under which every worker offers its figures, besides the service that answers
// live queries: every worker answers a request to it once.
const ServiceName = "settle-fleet"

// refusals is a bus that knows when and why the store last refused to store something.
type refusals interface {
	Refusal() (at time.Time, why string)
}

// unstoredFor is how long a failed write is reported. A worker writes at every heartbeat, so a lasting
// failure is renewed.
const unstoredFor = time.Minute

// binary returns the beginning of the hash of this process's program file, "" if the file cannot be
// read. The file is read once, at the first call.
var binary = sync.OnceValue(func() string {
	name, err := os.Executable()
	if _, gone := os.Stat("/proc/self/exe"); gone == nil {
		name, err = "/proc/self/exe", nil // valid even if another file has replaced it
	}
	if err != nil {
		return ""
	}
	file, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }() // only read
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))[:12]
})

// Source is what a process answers with.
type Source struct {
	Figures func() Figures
	Stuck   func(StuckQuery) StuckPage
}

func (s *Source) answer(request []byte) ([]byte, error) {
	var q Question
	if json.Unmarshal(request, &q) == nil && q.Stuck != nil { // requests without a question are empty
		return json.Marshal(s.Stuck(*q.Stuck))
	}
	return json.Marshal(s.Figures())
}

// Offer answers status requests with the figures of a process, until ctx ends. It returns when
// the endpoint is offered, or ctx ends. It passes each error to failed, which must block until the next attempt is due.
func Offer(ctx context.Context, bus port.Services, id string, of Source, failed func(error)) {
	service := model.Service{
		Name: ServiceName, Description: "Says what the worker " + id + " does.",
		Endpoints: []model.Endpoint{{
			Name: Endpoint(id), Description: "The worker's figures, or what a question asks for, as JSON.",
			Answer: of.answer,
		}},
	}
	for ctx.Err() == nil {
		err := bus.Serve(ctx, service)
		if err == nil || ctx.Err() != nil || errors.Is(err, model.ErrStopped) {
			return
		}
		failed(err)
	}
}
