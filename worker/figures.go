package worker

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// Figures is a worker's answer to a status request (FiguresEndpoint).
type Figures struct {
	Worker   string    `json:"worker"`
	Life     string    `json:"life"`
	Since    time.Time `json:"since"`
	Commits  uint64    `json:"commits"`
	Receipts uint64    `json:"receipts"`
	Refused  uint64    `json:"refused"`
	// Awake spaces are in memory, Loading of them are being loaded, and Queued ones wait
	// for that. Backlog is the size of the waiting events in bytes.
	Awake      int                `json:"awake"`
	Loading    int                `json:"loading"`
	Queued     int                `json:"queued"`
	Backlog    int64              `json:"backlog_bytes"`
	Partitions []PartitionFigures `json:"partitions"`
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

// PartitionFigures are the figures of one partition.
type PartitionFigures struct {
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

// FiguresEndpoint returns the endpoint at which a worker answers with its Figures.
func FiguresEndpoint(id string) string { return "worker-" + id }

// Describe fills in the figures of the process, independent of its partitions, and what its bus knows of the
// store.
func (f *Figures) Describe(self model.Member, bus Bus, now time.Time) {
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

// FleetService is the service under which every worker offers its figures, besides the service that answers
// live queries: a request to it is answered once by each worker.
const FleetService = "settle-fleet"

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

// OfferFigures answers status requests with the figures of a process, until ctx ends. It returns when
// the endpoint is offered, or ctx ends. It passes each error to failed, which must block until the next attempt is due.
func OfferFigures(ctx context.Context, bus Bus, id string, figures func() Figures, failed func(error)) {
	service := model.Service{
		Name: FleetService, Description: "Says what the worker " + id + " does.",
		Endpoints: []model.Endpoint{{
			Name: FiguresEndpoint(id), Description: "The worker's figures, as JSON.",
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

// Figures returns the worker's current figures.
func (w *Worker) Figures() Figures {
	c, s := w.Counts(), w.Stats()
	f := Figures{
		Commits: c.Commits, Receipts: c.Receipts, Refused: c.Refused,
		Awake: s.Awake, Loading: s.Loading, Queued: s.Waiting, Backlog: w.counters.backlog.Load(),
	}
	f.Abandoned = s.Abandoned
	f.Describe(w.roster.Self(), w.bus, w.cfg.Now())
	w.mu.Lock()
	serving, leaving := make([]*partition, 0, len(w.partitions)), make([]*partition, 0, len(w.leaving))
	for _, p := range w.partitions { // any order: sorted below
		serving = append(serving, p)
	}
	for _, p := range w.leaving { // any order: sorted below
		leaving = append(leaving, p)
	}
	w.mu.Unlock()
	for _, p := range serving {
		f.Partitions = append(f.Partitions, p.figures("serving"))
	}
	for _, p := range leaving {
		f.Partitions = append(f.Partitions, p.figures("leaving"))
	}
	for p, since := range w.roster.Wanted() { // any order: sorted below
		f.Partitions = append(f.Partitions, PartitionFigures{Partition: p, State: "waiting", Since: since.UTC()})
	}
	f.Stuck, f.StuckCount = w.stuckNow(serving)
	f.Losses, f.LossCount = lossesNow(serving)
	f.Busiest, f.Late, f.LateCount = loadOf(slices.Concat(serving, leaving), w.cfg.Now())
	f.Missed = w.counters.missed.newest()
	f.Next, f.Limit = w.residency.nextFew(), w.residency.limit
	w.sidecars.fill(&f)
	slices.SortFunc(f.Partitions, func(a, b PartitionFigures) int { return cmp.Compare(a.Partition, b.Partition) })
	return f
}

func (p *partition) figures(state string) PartitionFigures {
	s := p.stats()
	f := PartitionFigures{
		Partition: p.number, State: state, Since: p.tenure.began.UTC(), Took: p.tenure.took,
		Awake: s.Awake, Events: s.Events, Read: s.Read, Saved: s.Saved,
	}
	p.mu.Lock()
	if p.aside.upTo > f.Saved {
		f.Saved, f.Aside = p.aside.upTo, p.aside.spaces
	}
	p.mu.Unlock()
	for _, h := range p.all() {
		if h.inbox.laneDone() != allDone {
			f.Unsaved++
		}
	}
	return f
}

// offerFigures answers status requests, as soon as that is possible.
func (w *Worker) offerFigures() {
	w.tasks.Go(func() { // ends when the endpoint is offered, or with w.ctx
		OfferFigures(w.ctx, w.bus, w.cfg.ID, w.Figures, func(err error) {
			w.cfg.faults.Warn("offer the worker's figures", "", "worker", w.cfg.ID, "error", err)
			_ = pause.For(w.ctx, w.cfg.MemberTTL)
		})
	})
}

// lossesNow returns the first losses of all partitions, and the number of all.
func lossesNow(partitions []*partition) (first []Loss, count int) {
	for _, p := range partitions {
		first = append(first, p.losses.now()...)
	}
	slices.SortFunc(first, func(a, b Loss) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Space, b.Space))
	})
	return first[:min(len(first), maxStuck)], len(first)
}

// loadOf returns the spaces with most waiting events, and those with late events, the
// oldest first, with the number of all late spaces.
func loadOf(partitions []*partition, now time.Time) (busiest []Load, late []Late, lateCount int) {
	for _, p := range partitions {
		for _, h := range p.all() {
			if l, some := h.inbox.load(); some {
				busiest = append(busiest, Load{Space: h.space, Partition: p.number, Events: l.events, unread: l.unread, span: l.span})
			}
			if due := h.published.due.Load(); due > atOnce && due <= now.Add(-lateAfter).UnixMilli() {
				late = append(late, Late{h.space, p.number, int(h.published.timers.Load()), time.UnixMilli(due).UTC()})
			}
		}
	}
	slices.SortFunc(busiest, compareLoads)
	slices.SortFunc(late, func(a, b Late) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Space, b.Space)) })
	return busiest[:min(len(busiest), maxLoads)], late[:min(len(late), maxLoads)], len(late)
}
