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
	// Stuck are the spaces that have held back the saved position of their partition for
	// longest, 20 at most; StuckCount is the number of all such spaces.
	Stuck      []Stuck `json:"stuck,omitzero"`
	StuckCount int     `json:"stuck_count,omitzero"`
	// Next are the first few spaces that wait to be loaded, in order. Limit is how many may be
	// in memory, 0 for any number.
	Next  []string `json:"next,omitzero"`
	Limit int      `json:"limit,omitzero"`
	// Busiest are the spaces with most waiting events, and Late those with timers, jobs or delayed
	// events that are due and not handled, the oldest first, 5 of each at most. LateCount is the number of
	// all late spaces.
	Busiest   []Load `json:"busiest,omitzero"`
	Late      []Late `json:"late,omitzero"`
	LateCount int    `json:"late_count,omitzero"`
	// Missed are jobs whose times were passed over because no worker ran when they were due, the newest
	// that this worker knows.
	Missed []Missed `json:"missed,omitzero"`
	// Watches are the live queries that the worker serves, and Unrunnable the deployed versions that
	// cannot run here, each with the spaces assigned to it, the version that they run instead, and the reason.
	Watches    Watches  `json:"watches,omitzero"`
	Unrunnable []string `json:"unrunnable,omitzero"`
	// Abandoned counts goroutines in handlers or nodes that were given up and have not returned.
	Abandoned int `json:"abandoned,omitzero"`
	// Losses are the partitions and spaces that the worker refuses to serve because the store has
	// lost data of them, 20 at most; LossCount is the number of all.
	Losses    []Loss `json:"losses,omitzero"`
	LossCount int    `json:"loss_count,omitzero"`
	// Now is the worker's clock at the time of the answer, Binary identifies its program
	// file.
	Now time.Time `json:"now,omitzero"`
	// Unstored is why the store failed to store something within the last minute, "" if it did not fail; the reason
	// is the store's, if it gave one.
	Unstored string `json:"unstored,omitzero"`
	// Denied is the last permissions violation of the worker's NATS user within the last ten minutes, if there was one.
	Denied string `json:"denied,omitzero"`
	Binary string `json:"binary,omitzero"`
	// Rewinds are the streams that have gone back to an earlier state since the worker was started, each with the last
	// time of detection, the newest first, 20 at most; RewindCount is the number of all.
	Rewinds     []model.Rewind `json:"rewinds,omitzero"`
	RewindCount int            `json:"rewind_count,omitzero"`
	// Rewound is the newest of them, for readers of earlier versions.
	Rewound model.Rewind `json:"rewound,omitzero"`
}

// Partition is what a worker reports of one partition.
type Partition struct {
	Partition int `json:"partition"`
	// State is serving, leaving (it is being handed over) or waiting (for another worker
	// to hand it over); Since is when the state began.
	State string    `json:"state"`
	Since time.Time `json:"since"`
	// Took is the time between the moment when this worker learned that it owns the partition and
	// the start of serving it.
	Took time.Duration `json:"took_ns"`
	// Events were read and are not handled, Unsaved spaces have work to do or changes to save.
	Awake   int `json:"awake"`
	Events  int `json:"events"`
	Unsaved int `json:"unsaved"`
	// Read and Saved are lane sequences: up to which events were read, and from which the
	// next owner reads. Aside is the number of spaces that are not done with events before Saved; the next
	// owner's hosts read those events themselves.
	Read  uint64 `json:"read"`
	Saved uint64 `json:"saved"`
	Aside int    `json:"aside,omitzero"`
}

// Endpoint returns the endpoint at which a worker answers with its Figures.
func Endpoint(id string) string { return "worker-" + id }

// Describe fills in the figures of the process, independent of its partitions, and what its bus knows of the
// store.
func (f *Figures) Describe(self model.Member, bus port.Client, now time.Time) {
	f.Worker, f.Life, f.Since = self.ID, self.Life, self.Since
	f.Now, f.Binary = now.UTC(), binary()
	if says, can := bus.(refusals); can {
		if at, why := says.Refusal(); time.Since(at) < unstoredFor {
			f.Unstored = why
		}
	}
	noticed := port.NoticedBy(bus)
	f.Denied, f.Rewinds, f.RewindCount = noticed.Denied, noticed.Rewinds, noticed.RewindCount
	if len(f.Rewinds) > 0 {
		f.Rewound = f.Rewinds[0]
	}
}

// ServiceName is the service under which every worker offers its figures, besides the service that answers
// live queries: a request to it is answered once by each worker.
const ServiceName = "settle-fleet"

// refusals is a bus that knows when and why the store last refused to store something.
type refusals interface {
	Refusal() (at time.Time, why string)
}

// unstoredFor is how long that is reported: a worker writes once per heartbeat, and
// would be refused again.
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
	defer func() { _ = file.Close() }() // it was only read
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))[:12]
})

// Offer answers status requests with the figures of a process, until ctx ends. It returns when
// the endpoint is offered, or ctx ends. It passes each error to failed, which must block until the next attempt is due.
func Offer(ctx context.Context, bus port.Services, id string, figures func() Figures, failed func(error)) {
	service := model.Service{
		Name: ServiceName, Description: "Says what the worker " + id + " does.",
		Endpoints: []model.Endpoint{{
			Name: Endpoint(id), Description: "The worker's figures, as JSON.",
			Answer: func([]byte) ([]byte, error) { return json.Marshal(figures()) },
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
