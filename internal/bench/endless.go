package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/worker"
)

// EndlessConfig configures RunEndless.
type EndlessConfig struct {
	Dir    string
	Fsync  embedded.Fsync
	Events int
	// HistoryBytes is how much of the log is kept that no restart needs.
	HistoryBytes int64
	// Phase, if set, is called when a phase begins.
	Phase func(what string)
}

// Endless is the size of what one space stores as it handles more and more events.
type Endless struct {
	Fsync        string          `json:"fsync"`
	HistoryBytes int64           `json:"history_bytes"`
	Rate         float64         `json:"events_per_second"`
	Samples      []EndlessSample `json:"samples"`
	// Bounded is set if the log never held more than allowed, and a restart read no more at the end
	// than at the beginning.
	Bounded bool `json:"bounded"`
}

// EndlessSample is the state after a number of events.
type EndlessSample struct {
	Events int `json:"events"`
	// Log, State and Lane are the streams of the space's partition.
	Log   StreamSize `json:"log"`
	State StreamSize `json:"state"`
	Lane  StreamSize `json:"lane"`
	// Behind is the number of commits after the checkpoint that a restart has to read, Restart the
	// time from the start of a worker to the receipt of the next event. Both are 0 if no restart
	// was measured.
	Behind  int           `json:"commits_read_at_restart,omitempty"`
	Restart time.Duration `json:"restart_ns,omitempty"`
}

// StreamSize is the size of a stream.
type StreamSize struct {
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`
}

// RunEndless sends events to one space of a fresh embedded server in cfg.Dir.
func RunEndless(ctx context.Context, cfg EndlessConfig) (Endless, error) {
	r := &endless{cfg: cfg, out: Endless{Fsync: fsyncName(cfg.Fsync), HistoryBytes: cfg.HistoryBytes}}
	server, err := embedded.Start(context.Background(), embedded.Config{StoreDir: cfg.Dir, Fsync: cfg.Fsync})
	if err != nil {
		return r.out, err
	}
	defer server.Shutdown()
	r.server = server
	return r.out, errors.Join(r.do(ctx), r.stop())
}

type endless struct {
	cfg    EndlessConfig
	out    Endless
	server *embedded.Server
	sent   int
	started
}

func (r *endless) do(ctx context.Context) (err error) {
	config := func(name string) bus.Config { return bus.Config{Server: r.server, Name: name, Partitions: 1} }
	if r.bus, err = bus.Connect(ctx, config("client/plain")); err != nil {
		return err
	}
	// The server survives, so a saved checkpoint is durable.
	r.deployment, err = settle.Start(ctx, settle.Config{
		Programs: programs, Bus: config(""), Options: worker.Options{HistoryBytes: r.cfg.HistoryBytes, PurgeDelay: 1},
	})
	if err != nil {
		return err
	}
	var sending time.Duration
	for _, n := range stations(r.cfg.Events) {
		if r.cfg.Phase != nil {
			r.cfg.Phase(fmt.Sprintf("up to %d events", n))
		}
		begin := time.Now()
		if err := r.send(ctx, n); err != nil {
			return err
		}
		sending += time.Since(begin)
		if err := r.sample(ctx, restarts(n, r.cfg.Events)); err != nil {
			return err
		}
	}
	r.out.Rate = float64(r.cfg.Events) / sending.Seconds()
	r.out.judge()
	return nil
}

// stations returns the numbers of events at which a sample is taken.
func stations(events int) []int {
	list := []int{}
	for n := 1; n <= 10; n++ {
		list = append(list, events*n/100)
	}
	for n := 2; n <= 10; n++ {
		list = append(list, events*n/10)
	}
	return list
}

// restarts reports whether the worker is killed at a station: after one, ten and a hundred percent.
func restarts(n, events int) bool { return n == events/100 || n == events/10 || n == events }

const endlessSpace = "counter0"

func (r *endless) send(ctx context.Context, upTo int) error {
	handled := uint64(upTo - r.sent)
	before := r.deployment.Counts().Receipts
	s := r.deployment.Client().Pipeline(pipeline)
	for ; r.sent < upTo; r.sent++ {
		e := settle.Outgoing{Space: endlessSpace, Stream: "add", ID: settle.ID("e" + strconv.Itoa(r.sent)), Payload: one}
		if err := s.Send(ctx, e, nil); err != nil {
			return err
		}
	}
	if err := s.Flush(ctx); err != nil {
		return err
	}
	return r.until(ctx, func() bool { return r.deployment.Counts().Receipts-before >= handled })
}

func (r *endless) until(ctx context.Context, ok func() bool) error {
	for !ok() {
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// sample measures the streams, and a restart if asked for.
func (r *endless) sample(ctx context.Context, restart bool) error {
	s := EndlessSample{Events: r.sent}
	for name, size := range map[string]*StreamSize{"SETTLE_LOG_0": &s.Log, "KV_SETTLE_STATE_0": &s.State, "SETTLE_LANE_0": &s.Lane} {
		stream, err := r.bus.JetStream().Stream(ctx, name)
		if err != nil {
			return err
		}
		info := stream.CachedInfo()
		*size = StreamSize{info.State.Msgs, info.State.Bytes}
	}
	if restart {
		if err := r.restart(ctx, &s); err != nil {
			return err
		}
	}
	r.out.Samples = append(r.out.Samples, s)
	return nil
}

// restart kills the worker, and measures how long another one takes to handle the next event.
func (r *endless) restart(ctx context.Context, s *EndlessSample) error {
	workers := r.deployment.Workers()
	r.deployment.KillWorker(workers[0])
	behind, err := r.behind(ctx)
	if err != nil {
		return err
	}
	s.Behind = behind
	begin := time.Now()
	if _, err := r.deployment.AddWorker(ctx); err != nil {
		return err
	}
	_, err = r.deployment.Client().Call(ctx, settle.Outgoing{Space: endlessSpace, Stream: "add", ID: settle.ID("restart" + strconv.Itoa(r.sent)), Payload: one})
	s.Restart = time.Since(begin)
	return err
}

// behind returns the number of commits in the log after the checkpoint.
func (r *endless) behind(ctx context.Context) (n int, err error) {
	mark, _, err := r.bus.LoadMark(ctx, endlessSpace)
	for after := mark.Seq; err == nil; {
		var page []model.LogEntry
		if page, err = r.bus.ReadLog(ctx, endlessSpace, after, 512); len(page) == 0 {
			return n, err
		}
		n, after = n+len(page), page[len(page)-1].Seq
	}
	return n, err
}

// judge compares the end with the beginning. Between two samples, and until a checkpoint is saved,
// the log may grow beyond its limit.
func (e *Endless) judge() {
	e.Bounded = true
	var first, last *EndlessSample
	for i := range e.Samples {
		s := &e.Samples[i]
		if s.Log.Bytes > 2*uint64(e.HistoryBytes)+slack {
			e.Bounded = false
		}
		if s.Restart > 0 {
			if first == nil {
				first = s
			}
			last = s
		}
	}
	if first == nil || last.Behind > 4*first.Behind+restartSlack || last.Restart > 4*first.Restart+time.Second {
		e.Bounded = false
	}
}

const (
	slack        = 32 << 20 // appended within some seconds
	restartSlack = 20_000   // the same, in commits
)

// Print writes the figures for people.
func (e Endless) Print(w io.Writer) {
	fmt.Fprintf(w, "one space, fsync %s, %s of history, %.0f events/s\n", e.Fsync, size(uint64(e.HistoryBytes)), e.Rate)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "events\tlog\t\tstate\t\tlane\t\tread at restart\trestart\t")
	for _, s := range e.Samples {
		cells := []string{strconv.Itoa(s.Events)}
		for _, of := range []StreamSize{s.Log, s.State, s.Lane} {
			cells = append(cells, strconv.FormatUint(of.Messages, 10), size(of.Bytes))
		}
		if s.Restart > 0 {
			cells = append(cells, strconv.Itoa(s.Behind), s.Restart.Round(time.Millisecond).String())
		} else {
			cells = append(cells, "", "")
		}
		fmt.Fprintln(t, strings.Join(cells, "\t")+"\t")
	}
	_ = t.Flush() // an error of w shows when the caller closes it
	if e.Bounded {
		fmt.Fprintln(w, "Log and restart are bounded. The lane grows until its events are older than the horizon.")
	} else {
		fmt.Fprintln(w, "NOT BOUNDED: the log or a restart has grown with the number of events.")
	}
	fmt.Fprintln(w)
}

func size(bytes uint64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }
