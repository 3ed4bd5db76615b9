package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/dev"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/model"
)

// loadCmd is `settle load`.
type loadCmd struct {
	inName
	Space    string        `arg:"" optional:"" help:"The space of the events. Default: that of the sample of settle dev."`
	Stream   string        `arg:"" optional:"" help:"Their stream."`
	Payload  string        `arg:"" optional:"" help:"JSON, in which {n} stands for the number of the event."`
	Rate     float64       `help:"Events per second; at most 10,000." default:"50"`
	For      time.Duration `name:"for" help:"How long to send. Default: until interrupted." placeholder:"DURATION"`
	Patience time.Duration `help:"How long to wait for the last receipts." default:"30s"`
	JSON     bool          `name:"json" help:"Print JSON: a line for each second, then the result."`
}

const (
	maxLoadRate = 10_000
	// loadTick is how often events are sent.
	loadTick = 10 * time.Millisecond
	// maxLoadWaiting bounds the events without a receipt: when so many wait, none is sent.
	maxLoadWaiting = 20_000
)

// Run sends events at a rate, and compares them with the log in the end.
func (c *loadCmd) Run(ctx context.Context, io streams) error {
	switch {
	case c.Space == "":
		c.Space, c.Stream, c.Payload = dev.SampleSpace, "temp", `{"sensor": "load", "c": 5}`
	case c.Stream == "":
		return usage(errors.New("name a stream as well: settle load SPACE STREAM [PAYLOAD]"))
	}
	if !(c.Rate > 0 && c.Rate <= maxLoadRate) {
		return usage(fmt.Errorf("--rate %g: use a number of events per second, at most %d", c.Rate, maxLoadRate))
	}
	if c.For < 0 || c.Patience < 0 {
		return usage(errors.New("--for and --patience are durations, such as 30s"))
	}
	if _, err := c.payload(1); err != nil {
		return usage(fmt.Errorf("the payload is not JSON: %w", err))
	}
	return c.use(context.WithoutCancel(ctx), io, ofSpaces(c.Space), func(b *bus.Bus, client *settle.Client) error {
		l := &loading{
			cmd: c, io: io, bus: b, client: client, run: "load-" + strconv.FormatInt(time.Now().UnixMilli(), 36),
			waiting: map[string]time.Time{}, outcomes: map[model.Outcome]int{},
		}
		return l.do(ctx)
	})
}

// payload returns the payload of the n-th event, absent for none.
func (c *loadCmd) payload(n int) (model.Value, error) {
	if c.Payload == "" {
		return model.Value{}, nil
	}
	return model.ParseValue([]byte(strings.ReplaceAll(c.Payload, "{n}", strconv.Itoa(n))))
}

// loading is a run of `settle load`.
type loading struct {
	cmd    *loadCmd
	io     streams
	bus    *bus.Bus
	client *settle.Client
	run    string // of which the ids begin

	mu sync.Mutex
	// waiting has when the events were sent that have no receipt yet.
	waiting  map[string]time.Time
	sent     int // attempts
	stored   []string
	failed   int // whose storing is not certain
	lastErr  error
	outcomes map[model.Outcome]int
	took     []time.Duration // since the last line
}

// loadLine is a line of the output.
type loadLine struct {
	Second  int     `json:"second"`
	Sent    int     `json:"sent"`
	Handled int     `json:"handled"`
	Other   int     `json:"other"`
	Waiting int     `json:"waiting"`
	P50     float64 `json:"p50_ms"`
	P99     float64 `json:"p99_ms"`
}

// loadResult compares what was sent with the log.
type loadResult struct {
	Sent     int `json:"sent"`
	Stored   int `json:"stored"`
	Handled  int `json:"handled"`
	Failed   int `json:"failed"` // with another outcome
	Commits  int `json:"commits"`
	Twice    int `json:"duplicates"`
	Lost     int `json:"lost"`
	Disorder int `json:"out_of_order"`
	// Workers are those that have handled the events.
	Workers []string `json:"workers"`
}

func (l *loading) do(ctx context.Context) error {
	if l.cmd.For > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.cmd.For)
		defer cancel()
	}
	space := l.client.Space(l.cmd.Space)
	page, err := space.Log(ctx, history.LogQuery{Limit: 1}) // before anything is sent: no receipt is missed
	if err != nil {
		return err
	}
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	all := make(chan error, 1)
	go func() { all <- l.follow(following, page) }() // ends with following
	if !l.cmd.JSON {
		fmt.Fprintf(l.io.out, "sending %g events a second to %s/%s, with the ids %s-1 and so on; Ctrl-C ends it and compares with the log\n",
			l.cmd.Rate, l.cmd.Space, l.cmd.Stream, l.run)
	}
	l.send(ctx)
	l.wait(following)
	stop()
	if err := <-all; err != nil {
		return err
	}
	r, err := l.compare(context.WithoutCancel(ctx), space)
	if err != nil {
		return err
	}
	return l.report(r)
}

// send sends events until ctx ends, and prints a line each second.
func (l *loading) send(ctx context.Context) {
	sender := l.client.Sender()
	tick := time.NewTicker(loadTick)
	defer tick.Stop()
	began, line := time.Now(), 1
	for {
		due := int(time.Since(began).Seconds()*l.cmd.Rate) + 1
		for l.attempts() < due && l.open() < maxLoadWaiting && ctx.Err() == nil {
			l.one(ctx, sender)
		}
		if s := int(time.Since(began).Seconds()); s >= line {
			l.line(s)
			line = s + 1
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			_ = sender.Flush(context.WithoutCancel(ctx)) // the answers were counted
			return
		}
	}
}

// one sends the next event.
func (l *loading) one(ctx context.Context, sender *settle.Sender) {
	l.mu.Lock()
	l.sent++
	n := l.sent
	id := fmt.Sprintf("%s-%d", l.run, n)
	l.waiting[id] = time.Now()
	l.mu.Unlock()
	payload, err := l.cmd.payload(n)
	e := settle.Outgoing{Space: l.cmd.Space, Stream: l.cmd.Stream, ID: settle.ID(id)}
	if !payload.IsAbsent() {
		e.Payload = payload
	}
	answered := func(_ model.SendResult, err error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if err == nil {
			l.stored = append(l.stored, id)
			return
		}
		delete(l.waiting, id)
		l.failed, l.lastErr = l.failed+1, err
	}
	if err == nil {
		err = sender.Send(context.WithoutCancel(ctx), e, answered)
	}
	if err != nil {
		answered(model.SendResult{}, err)
	}
}

func (l *loading) attempts() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent
}

func (l *loading) open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}

// follow takes the receipts that come after a page of the log, until ctx ends.
func (l *loading) follow(ctx context.Context, page *history.Page) error {
	err := page.Follow(ctx, l.bus, history.LogQuery{}, func(e *history.Entry) bool {
		for i := range e.Steps {
			if s := &e.Steps[i]; s.Event != nil && s.Outcome != "" {
				l.ended(s.Event.Event, s.Outcome)
			}
		}
		return true
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (l *loading) ended(id string, as model.Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if since, mine := l.waiting[id]; mine {
		delete(l.waiting, id)
		l.outcomes[as]++
		l.took = append(l.took, time.Since(since))
	}
}

// line prints what has happened up to a second.
func (l *loading) line(second int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.Sort(l.took)
	at := func(part float64) float64 {
		if len(l.took) == 0 {
			return 0
		}
		return float64(l.took[int(part*float64(len(l.took)-1))].Microseconds()) / 1000
	}
	out := loadLine{Second: second, Sent: l.sent, Handled: l.outcomes[model.Handled], Waiting: len(l.waiting), P50: at(0.5), P99: at(0.99)}
	for o, n := range l.outcomes { // any order: a sum
		if o != model.Handled {
			out.Other += n
		}
	}
	l.took = l.took[:0]
	if l.cmd.JSON {
		_ = printLine(l.io.out, &out) // the result is printed as well, and its error counts
		return
	}
	other := ""
	if out.Other > 0 {
		other = fmt.Sprintf("  failed %s", display.Grouped(out.Other))
	}
	fmt.Fprintf(l.io.out, "%4ds  sent %s  handled %s%s  waiting %s  receipts within %.1f ms (half), %.1f ms (99 %%)\n",
		second, display.Grouped(out.Sent), display.Grouped(out.Handled), other, display.Grouped(out.Waiting), out.P50, out.P99)
}

// wait waits for the receipts of what was sent.
func (l *loading) wait(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, l.cmd.Patience)
	defer cancel()
	tick := time.NewTicker(loadTick)
	defer tick.Stop()
	for l.open() > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// compare counts the receipts in the log.
func (l *loading) compare(ctx context.Context, space settle.Space) (*loadResult, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &loadResult{Sent: l.sent, Stored: len(l.stored)}
	times, commits, workers, last := map[string]int{}, map[uint64]bool{}, map[string]bool{}, uint64(0)
	for h, err := range space.Receipts(ctx, history.ReceiptFilter{Stream: l.cmd.Stream}) {
		if err != nil {
			return nil, fmt.Errorf("read the log of space %s: %w", l.cmd.Space, err)
		}
		rc := h.Tx.Receipt
		if !strings.HasPrefix(rc.Event, l.run+"-") {
			continue
		}
		if times[rc.Event]++; times[rc.Event] > 1 {
			r.Twice++
			continue
		}
		if rc.Outcome == model.Handled {
			r.Handled++
		} else {
			r.Failed++
		}
		if rc.Lane < last {
			r.Disorder++
		}
		last, commits[h.Seq], workers[h.Runtime] = rc.Lane, true, true
	}
	r.Commits, r.Workers = len(commits), slices.Sorted(maps.Keys(workers))
	for _, id := range l.stored {
		if times[id] == 0 {
			r.Lost++
		}
	}
	return r, nil
}

// report prints the result. What should not be is an error.
func (l *loading) report(r *loadResult) error {
	if l.cmd.JSON {
		if err := printLine(l.io.out, r); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(l.io.out, "sent %s, stored %s; in the log: handled %s, failed %s, duplicates %s, lost %s, out of order %s; %s, by %s\n",
			display.Grouped(r.Sent), display.Grouped(r.Stored), display.Grouped(r.Handled), display.Grouped(r.Failed), display.Grouped(r.Twice),
			display.Grouped(r.Lost), display.Grouped(r.Disorder), display.Count(r.Commits, "commit"), strings.Join(r.Workers, ", "))
	}
	switch {
	case r.Twice+r.Lost+r.Disorder > 0:
		return errors.New("the log is not what was sent: see above; `settle receipts " + l.cmd.Space + "` lists it")
	case l.failed > 0:
		return fmt.Errorf("of %s it is not certain whether they are stored: %w", display.Count(l.failed, "event"), l.lastErr)
	}
	return nil
}
