package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/worker"
)

// SpacesConfig configures RunSpaces: the number of spaces, and how many are active at a time.
type SpacesConfig struct {
	// URL is the server's address, Server returns the server's own figures.
	URL    string
	Server func(context.Context) (ServerState, error)
	Fsync  string // for the record

	Spaces     int
	Active     int
	Single     int // events of the latency part
	Partitions int
	// Idle is how long a space is at rest before it is unloaded.
	Idle time.Duration
	// Phase, if set, is called when a phase begins.
	Phase func(what string)
}

// ServerState is a server's resource usage for a deployment.
type ServerState struct {
	Heap          uint64 `json:"heap_bytes"`
	Subscriptions int    `json:"subscriptions"`
}

// Assets are the resources of a deployment on the server. None of them may grow with the number of
// spaces.
type Assets struct {
	Streams       int `json:"streams"` // buckets are streams
	Consumers     int `json:"consumers"`
	Subscriptions int `json:"subscriptions"`
}

// Footprint is the memory of the worker's process, with a client and a coordinator in it, at one
// moment after a garbage collection.
type Footprint struct {
	Heap       uint64 `json:"heap_bytes"`
	Stacks     uint64 `json:"stack_bytes"`
	Goroutines int    `json:"goroutines"`
	Awake      int    `json:"awake"`
	Server     uint64 `json:"server_heap_bytes"`
}

// Spaces is the result of RunSpaces.
type Spaces struct {
	Fsync  string `json:"fsync"`
	Spaces int    `json:"spaces"`
	Active int    `json:"active"`
	Idle   string `json:"idle"`

	// Start is before the first event, First with the first Active spaces in memory, Last when all
	// spaces were in memory once and the last Active still are, AtRest when all are unloaded.
	Start  Footprint `json:"start"`
	First  Footprint `json:"first_active"`
	Last   Footprint `json:"all_seen"`
	AtRest Footprint `json:"all_dormant"`
	// MostAwake is the largest number of spaces seen in memory at a time.
	MostAwake int `json:"most_awake"`
	// PerAwake and PerDormant are bytes of the worker's process, heap and stacks, per space;
	// ServerPerSpace those of the server's heap.
	PerAwake       float64 `json:"bytes_per_awake_space"`
	PerDormant     float64 `json:"bytes_per_dormant_space"`
	ServerPerSpace float64 `json:"server_bytes_per_space"`

	Before Assets `json:"assets_before"`
	After  Assets `json:"assets_after"`

	// Activations is the number of dormant spaces per second that were loaded, handled two events
	// each, and were unloaded again.
	Activations float64 `json:"activations_per_second"`
	// Dormant and Awake are the times from sending an event to its receipt, one at a time, in a
	// space that was dormant, and then in the same one.
	Dormant Percentiles `json:"dormant_send_to_receipt"`
	Awake   Percentiles `json:"awake_send_to_receipt"`
	// Ratio is the ratio of the medians.
	Ratio float64 `json:"ratio"`
}

// RunSpaces measures on a fresh server.
func RunSpaces(ctx context.Context, cfg SpacesConfig) (Spaces, error) {
	r := &spacesRun{cfg: cfg, out: Spaces{Fsync: cfg.Fsync, Spaces: cfg.Spaces, Active: cfg.Active, Idle: cfg.Idle.String()}}
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"connecting", r.connect},
		{fmt.Sprintf("%d spaces, %d at a time", cfg.Spaces, cfg.Active), r.visitSpaces},
		{"waiting until all are dormant", r.rest},
		{"one at a time", r.latency},
		{"counting", r.finish},
	} {
		if cfg.Phase != nil {
			cfg.Phase(step.what)
		}
		if err := step.do(ctx); err != nil {
			return r.out, errors.Join(fmt.Errorf("%s: %w", step.what, err), r.stop())
		}
	}
	return r.out, r.stop()
}

// spacesRun is one measurement in progress.
type spacesRun struct {
	cfg SpacesConfig
	out Spaces
	started
}

func (r *spacesRun) connect(ctx context.Context) (err error) {
	r.deployment, err = settle.Start(ctx, settle.Config{
		Programs: settle.Always(counterProgram), Bus: bus.Config{URL: r.cfg.URL, Partitions: r.cfg.Partitions},
		Options: worker.Options{Idle: r.cfg.Idle, MaxAwake: r.cfg.Active},
	})
	if err != nil {
		return err
	}
	// The effects of the very first event, and of the first read of a state, are not to be counted.
	if err := r.sendAll(ctx, -r.cfg.Active, 0, "first"); err != nil {
		return err
	}
	if err := r.handled(ctx, uint64(r.cfg.Active)); err != nil {
		return err
	}
	if _, err := r.deployment.Bus().LoadState(ctx, r.space(-1)); err != nil {
		return err
	}
	if err := r.rest(ctx); err != nil {
		return err
	}
	r.out.Start = r.out.AtRest
	r.out.Before, err = r.assets(ctx)
	return err
}

func (r *spacesRun) space(i int) string { return "space" + strconv.Itoa(i) }

// visitSpaces goes through all spaces, a window at a time, and sends two events to each, the second of
// which finds the space loaded.
func (r *spacesRun) visitSpaces(ctx context.Context) error {
	sent := r.deployment.Counts().Receipts // of spaces that had their events
	var took time.Duration
	for from := 0; from < r.cfg.Spaces; from += r.cfg.Active {
		to := min(from+r.cfg.Active, r.cfg.Spaces)
		begin := time.Now()
		for _, id := range []string{"first", "second"} {
			if err := r.sendAll(ctx, from, to, id); err != nil {
				return err
			}
		}
		sent += 2 * uint64(to-from)
		if err := r.handled(ctx, sent); err != nil {
			return err
		}
		took += time.Since(begin)
		if from == 0 {
			if err := r.saved(ctx); err != nil {
				return err
			}
			if err := r.measure(ctx, &r.out.First); err != nil {
				return err
			}
		}
	}
	r.out.Activations = float64(r.cfg.Spaces) / took.Seconds()
	return r.measure(ctx, &r.out.Last)
}

func (r *spacesRun) sendAll(ctx context.Context, from, to int, id string) error {
	s := r.deployment.Client().Pipeline(1)
	for i := from; i < to; i++ {
		if err := s.Send(ctx, settle.Outgoing{Space: r.space(i), Stream: "add", ID: settle.ID(id), Payload: one}, nil); err != nil {
			return err
		}
	}
	return s.Flush(ctx)
}

func (r *spacesRun) handled(ctx context.Context, n uint64) error {
	return r.until(ctx, func() bool { return r.deployment.Counts().Receipts >= n })
}

// until polls every few milliseconds until a condition holds.
func (r *spacesRun) until(ctx context.Context, ok func() bool) error {
	for !ok() {
		r.out.MostAwake = max(r.out.MostAwake, r.awake())
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (r *spacesRun) awake() (n int) {
	for _, s := range r.deployment.Stats() { // any order: a sum
		n += s.Awake
	}
	return n
}

// saved waits until the loaded spaces have had time to be saved.
func (r *spacesRun) saved(ctx context.Context) error {
	begin := time.Now()
	return r.until(ctx, func() bool { return time.Since(begin) > min(r.cfg.Idle/3, 1500*time.Millisecond) })
}

// rest waits until no space is in memory.
func (r *spacesRun) rest(ctx context.Context) error {
	if err := r.until(ctx, func() bool { return r.awake() == 0 }); err != nil {
		return err
	}
	return r.measure(ctx, &r.out.AtRest)
}

// measure measures the memory of this process and of the server.
func (r *spacesRun) measure(ctx context.Context, f *Footprint) error {
	runtime.GC()
	runtime.GC() // objects held by finalizers and pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	*f = Footprint{Heap: m.HeapAlloc, Stacks: m.StackInuse, Goroutines: runtime.NumGoroutine(), Awake: r.awake()}
	s, err := r.cfg.Server(ctx)
	f.Server = s.Heap
	return err
}

// latency sends one event at a time to dormant spaces, and then one more to each.
func (r *spacesRun) latency(ctx context.Context) error {
	var dormant, awake []time.Duration
	for n, i := range rand.Perm(r.cfg.Spaces)[:min(r.cfg.Single, r.cfg.Spaces)] {
		for _, d := range []*[]time.Duration{&dormant, &awake} {
			begin := time.Now()
			if err := r.call(ctx, r.space(i), fmt.Sprintf("call%d-%d", n, len(*d)+len(dormant))); err != nil {
				return err
			}
			*d = append(*d, time.Since(begin))
		}
	}
	r.out.Dormant, r.out.Awake = percentiles(dormant), percentiles(awake)
	r.out.Ratio = r.out.Dormant.P50 / r.out.Awake.P50
	return nil
}

func (r *spacesRun) call(ctx context.Context, space, id string) error {
	_, err := r.deployment.Client().Call(ctx, settle.Outgoing{Space: space, Stream: "add", ID: settle.ID(id), Payload: one})
	return err
}

func (r *spacesRun) finish(ctx context.Context) (err error) {
	if err := r.until(ctx, func() bool { return r.awake() == 0 }); err != nil {
		return err
	}
	if err := r.lapse(ctx); err != nil {
		return err
	}
	of := func(f Footprint) float64 { return float64(f.Heap + f.Stacks) }
	r.out.PerAwake = (of(r.out.First) - of(r.out.Start)) / float64(max(1, r.out.First.Awake))
	r.out.PerDormant = (of(r.out.AtRest) - of(r.out.Start)) / float64(r.cfg.Spaces)
	r.out.ServerPerSpace = (float64(r.out.AtRest.Server) - float64(r.out.Start.Server)) / float64(r.cfg.Spaces)
	return nil
}

// lapse waits until the client has closed what it keeps open for a while after a call, and counts
// what is left.
func (r *spacesRun) lapse(ctx context.Context) (err error) {
	for begin := time.Now(); time.Since(begin) < lapseLimit; {
		if r.out.After, err = r.assets(ctx); err != nil || r.out.After == r.out.Before {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil // the figures show it
}

// lapseLimit is longer than a client follows a space after a call.
const lapseLimit = time.Minute

// assets counts the resources of the deployment on the server.
func (r *spacesRun) assets(ctx context.Context) (a Assets, err error) {
	streams := r.deployment.Bus().JetStream().ListStreams(ctx)
	for info := range streams.Info() {
		a.Streams++
		a.Consumers += info.State.Consumers
	}
	if err := streams.Err(); err != nil {
		return a, err
	}
	s, err := r.cfg.Server(ctx)
	a.Subscriptions = s.Subscriptions
	return a, err
}

// LocalState returns the state of a server in this process. Its heap is that of the process.
func LocalState(s *embedded.Server) ServerState {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return ServerState{Heap: m.HeapAlloc, Subscriptions: s.Subscriptions()}
}
