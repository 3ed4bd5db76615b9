package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/examples/flights"
	"github.com/settlehq/settle/examples/flights/audit"
	"github.com/settlehq/settle/examples/flights/daily"
	"github.com/settlehq/settle/flow"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/worker"
)

// Daily is the program of a pipeline, as Role.Program names it.
const Daily = "daily"

// dailyRun is the ID of a run. Each day has a space of its own.
const dailyRun = "report"

// approver is what the demo signs with, in place of a person.
const approver = "the demo"

// Pipeline configures `settle demo pipeline`.
type Pipeline struct {
	// Days is the number of days, each with a run and a space of its own.
	Days       int
	Workers    int
	Partitions int
	// Kill is how many workers are killed.
	Kill int
	// Processes makes workers and coordinator processes of their own, killed by SIGKILL.
	Processes bool
	Fsync     embedded.Fsync
	// Pace is how long an action takes, Sleep how long a run sleeps before it waits for the approval.
	Pace, Sleep time.Duration
	// Hold is how long a run is left to wait before the demo approves it.
	Hold time.Duration
	// Rejoin and Patience are as in Options.
	Rejoin, Patience time.Duration
}

// maxDays bounds the days: the built-in flights have 90.
const maxDays = 30

// Check returns an error about the first invalid option.
func (o *Pipeline) Check() error {
	if o.Days < 1 || o.Days > maxDays {
		return fmt.Errorf("--days %d: choose 1 to %d", o.Days, maxDays)
	}
	for flag, d := range map[string]time.Duration{"--pace": o.Pace, "--sleep": o.Sleep, "--approve-after": o.Hold} { // any order: one is named
		if d < 0 {
			return fmt.Errorf("%s %v: choose 0 or more", flag, d)
		}
	}
	same := Options{Workers: o.Workers, Partitions: o.Partitions, Duplicate: 1, Kill: o.Kill}
	return same.Check()
}

// PipelineReport contains the figures of a pipeline. The JSON names are an interface for scripts.
type PipelineReport struct {
	Days      int     `json:"days"`
	Flights   int     `json:"flights"`
	Actions   int     `json:"actions"`
	Attempts  int     `json:"attempts"`
	Failures  int     `json:"failures"`
	Repeated  int     `json:"repeated"`
	Killed    int     `json:"killed"`
	Takeovers int     `json:"takeovers"`
	Commits   int     `json:"commits"`
	Seconds   float64 `json:"seconds"`
	// Verified is what the comparison has found, which is made whether it is printed or not.
	Verified    bool     `json:"verified"`
	Differences []string `json:"differences,omitzero"`
}

// pipeline is a pipeline in progress.
type pipeline struct {
	o     Pipeline
	place place
	path  string // of the ledger
	// offset is up to where the ledger was read.
	offset int64
	days   []string
	plain  map[string]*daily.Report
	total  int // actions
	work   int // the sum of their weights
	logs   *logs
	d      deployment
	*narrator

	mu      sync.Mutex
	ended   map[string]bool // keys of actions
	done    int             // the sum of their weights
	running map[string]bool // days
	killed  int
	last    time.Time // of progress
	// waits gets the first day that waits for its approval; calm is closed when it may have it.
	waits chan string
	calm  chan struct{}
}

// RunPipeline runs the workflow of package daily, one run for each day, and writes what happens. The error is about a run that
// could not be completed; whether a completed one is verified is in the report.
func RunPipeline(ctx context.Context, o Pipeline, out io.Writer) (rep *PipelineReport, err error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	same := Options{Rejoin: o.Rejoin, Patience: o.Patience}
	same.fill()
	o.Rejoin, o.Patience = same.Rejoin, same.Patience
	p := &pipeline{
		o: o, plain: map[string]*daily.Report{}, logs: newLogs(nil, time.Now()), narrator: newNarrator(out),
		ended: map[string]bool{}, running: map[string]bool{}, last: time.Now(), waits: make(chan string, o.Days), calm: make(chan struct{}),
	}
	if err := p.plan(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "settle-demo-")
	if err != nil {
		return nil, fmt.Errorf("make a temporary directory for the server: %w", err)
	}
	p.place, p.path = place{dir: filepath.Join(dir, "nats"), prefix: "daily"}, filepath.Join(dir, "ledger")
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if p.d, err = p.start(ctx); err != nil {
		return nil, err
	}
	defer func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		err = errors.Join(err, p.d.Stop(stopping))
	}()
	began := time.Now()
	if err := p.play(ctx); err != nil {
		return nil, err
	}
	took := time.Since(began)
	if err := stopWorkers(ctx, p.d); err != nil {
		return nil, err
	}
	return p.verify(ctx, took)
}

// plan computes the reports that the runs must have.
func (p *pipeline) plan() error {
	all, err := flights.BuiltIn()
	if err != nil {
		return err
	}
	p.days = daily.Days(all, p.o.Days)
	for _, day := range p.days {
		want := daily.Plain(all, day, approver)
		p.plain[day], p.running[day] = &want, true
		p.total += want.Actions()
		p.work += want.Actions() + (loopWeight-1)*len(want.Airports)
	}
	return nil
}

// dailyProgram returns the programs of workers: the same for each space.
func dailyProgram(all func() ([]flights.Flight, error), l *daily.Ledger, pace time.Duration) (settle.Programs, error) {
	program, err := daily.Program(daily.Config{Flights: all, Ledger: l, Pace: pace})
	if err != nil {
		return nil, err
	}
	return settle.Always(program), nil
}

func (p *pipeline) start(ctx context.Context) (deployment, error) {
	cfg := settle.Config{
		Workers: p.o.Workers, Server: p.place.server(p.o.Fsync), Bus: p.place.bus(p.o.Partitions),
		Options: worker.Options{Heartbeat: heartbeat, Checkpoint: checkpoint},
	}
	if p.o.Processes {
		return startProcesses(ctx, cfg, Daily, "--ledger", p.path, "--pace", p.o.Pace.String())
	}
	// Actions that fail as planned are warnings.
	cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	var err error
	if cfg.Programs, err = dailyProgram(flights.BuiltIn, &daily.Ledger{Path: p.path}, p.o.Pace); err != nil {
		return nil, err
	}
	return settle.Start(ctx, cfg)
}

// spaceOf returns the space of a day, which is written with slashes in the file.
func spaceOf(day string) string { return strings.ReplaceAll(day, "/", "-") }

func (p *pipeline) runs(day string) flow.Runs { return flow.In(p.d.Client().Space(spaceOf(day))) }

// play starts the runs, and returns when all have ended and all kills have happened.
func (p *pipeline) play(ctx context.Context) error {
	p.heading(p)
	for _, day := range p.days {
		if _, err := p.runs(day).Start(ctx, daily.Workflow, dailyRun, map[string]string{"day": day, "pause": p.o.Sleep.String()}); err != nil {
			return fmt.Errorf("start the run of %s: %w", day, err)
		}
	}
	p.line("", "started: a run for each day, in a space of its own")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	beside, ctx := errgroup.WithContext(ctx)
	for n := range p.o.Partitions {
		beside.Go(func() error { return p.logs.follow(ctx, p.d.Bus(), n) })
	}
	beside.Go(func() error { return p.count(ctx) })
	var work errgroup.Group
	work.Go(func() error { return p.chaos(ctx) })
	for _, day := range p.days {
		work.Go(func() error { return p.follow(ctx, day) })
	}
	err := work.Wait()
	cancel()
	if err := failure(beside.Wait(), err); err != nil {
		return err
	}
	return p.read() // what was written since it was last read
}

// progressed notes that something has happened.
func (p *pipeline) progressed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = time.Now()
}

// tick is how often the demo reads the ledger and the runs.
const tick = 50 * time.Millisecond

// count follows the ledger until ctx ends. It gives up when nothing happens for Patience.
func (p *pipeline) count(ctx context.Context) error {
	for pause.For(ctx, tick) == nil {
		if err := p.read(); err != nil {
			return err
		}
		p.mu.Lock()
		silent := time.Since(p.last)
		p.mu.Unlock()
		if silent > p.o.Patience {
			return fmt.Errorf("nothing has happened for %v; still running: %s", p.o.Patience, strings.Join(p.alive(), ", "))
		}
	}
	return ctx.Err()
}

// read reads what is new in the ledger, and reports progress.
func (p *pipeline) read() error {
	list, next, err := daily.ReadLedger(p.path, p.offset)
	if err != nil {
		return fmt.Errorf("read the ledger of actions: %w", err)
	}
	p.offset = next
	p.mu.Lock()
	before := len(p.ended)
	for _, e := range list {
		if e.What == daily.Ended && !p.ended[e.Key] {
			p.ended[e.Key] = true
			p.done += weight(e.Action)
		}
	}
	if len(list) > 0 {
		p.last = time.Now()
	}
	ended := len(p.ended)
	p.mu.Unlock()
	p.failures(list)
	if quarters := 4 * ended / p.total; quarters > 4*before/p.total {
		p.quarter(25*quarters, ended, p.total)
	}
	return nil
}

// loopWeight is the weight of an action that is performed in a loop, one after the other. Those of a fan-out weigh 1: without
// weights nearly all kills would meet the fan-out, which has most actions and takes the shortest time.
const loopWeight = 4

func weight(action string) int {
	if action == "sum_up" {
		return loopWeight
	}
	return 1
}

// alive returns the days whose runs have not ended.
func (p *pipeline) alive() (days []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, day := range p.days {
		if p.running[day] {
			days = append(days, day)
		}
	}
	return days
}

// follow narrates the run of a day until it has ended, and approves it after it was seen to wait.
func (p *pipeline) follow(ctx context.Context, day string) error {
	runs, last := p.runs(day), ""
	for {
		s, err := runs.Status(ctx, dailyRun)
		switch now := stageOf(s); {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return fmt.Errorf("the run of %s: %w", day, err)
		case s.State == flow.Done:
			p.mu.Lock()
			delete(p.running, day)
			p.mu.Unlock()
			title, _ := s.Result.Get("title").AsString()
			p.line(day, "%s", p.style.green("done: ")+strings.TrimPrefix(title, day+": "))
			return nil
		case s.Error != nil:
			return fmt.Errorf("the run of %s is %s: %w", day, s.State, s.Error)
		case now != last:
			last = now
			p.progressed()
			p.stage(day, now, s)
			if now == waiting {
				if err := p.approve(ctx, day); err != nil {
					return err
				}
			}
		}
		if err := pause.For(ctx, tick); err != nil {
			return err
		}
	}
}

// approve sends the signal that the run of a day waits for. If a kill is kept for that moment, it comes first, and the run
// must be seen to wait still.
func (p *pipeline) approve(ctx context.Context, day string) error {
	p.waits <- day // it has room for all days
	select {
	case <-p.calm:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := pause.For(ctx, p.o.Hold); err != nil {
		return err
	}
	s, err := p.runs(day).Status(ctx, dailyRun)
	if err != nil {
		return err
	}
	if stageOf(s) != waiting {
		return fmt.Errorf("the run of %s does not wait for its approval any more, and has none", day)
	}
	p.line(day, "still waits; the demo approves it, in place of a person")
	return p.runs(day).Signal(ctx, dailyRun, daily.Approve, approver)
}

// chaos kills workers. With two or more, the last kill waits for a run that waits for its approval; the others are spread over
// the actions.
func (p *pipeline) chaos(ctx context.Context) error {
	early := p.o.Kill
	if p.o.Kill > 1 {
		early--
	}
	for i := range early {
		for p.progress() < p.work*(i+1)/(early+1) {
			if err := pause.For(ctx, tick); err != nil {
				return err
			}
		}
		if err := p.kill(ctx, ""); err != nil {
			return err
		}
	}
	if early < p.o.Kill {
		select {
		case day := <-p.waits:
			if err := p.kill(ctx, day); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	close(p.calm)
	return nil
}

// progress returns the weight of the actions that have ended.
func (p *pipeline) progress() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done
}

// kill kills a worker that serves a day, or any day that has not ended, and adds another one a moment later.
func (p *pipeline) kill(ctx context.Context, day string) error {
	victim, serves := "", []string(nil)
	for victim == "" {
		if victim, serves = p.owner(day); victim == "" {
			if err := pause.For(ctx, tick); err != nil {
				return err
			}
		}
	}
	if !p.d.KillWorker(victim) {
		return fmt.Errorf("kill worker %s: it is gone already", victim)
	}
	p.progressed()
	p.mu.Lock()
	p.killed++
	p.mu.Unlock()
	p.kills(victim, p.o.Processes, serves)
	if err := pause.For(ctx, p.o.Rejoin); err != nil {
		return err
	}
	joined, err := p.d.AddWorker(ctx)
	if err != nil {
		return fmt.Errorf("add a worker after %s was killed: %w", victim, err)
	}
	p.line("", "%s joined", joined)
	return nil
}

// owner returns the worker that is alive and serves a day, or most of the days that have not ended if it is "", and the days
// that it serves. The logs have the last worker that took over each space.
func (p *pipeline) owner(day string) (victim string, serves []string) {
	days := p.alive()
	for _, id := range p.d.Workers() {
		if day != "" && p.logs.owner(spaceOf(day)) != id {
			continue
		}
		var own []string
		for _, day := range days {
			if p.logs.owner(spaceOf(day)) == id {
				own = append(own, day)
			}
		}
		if len(own) > len(serves) {
			victim, serves = id, own
		}
	}
	return victim, serves
}

// verify reads what is stored, by a plain NATS client, and compares it.
func (p *pipeline) verify(ctx context.Context, took time.Duration) (*PipelineReport, error) {
	stored, err := audit.Read(ctx, p.d.Bus().JetStream(), p.place.prefix)
	if err != nil {
		return nil, fmt.Errorf("read back what is stored: %w", err)
	}
	var s Snapshot
	p.logs.snapshot(&s)
	rep := &PipelineReport{Days: len(p.days), Killed: p.killed, Takeovers: s.Takeovers, Commits: s.Commits, Seconds: took.Seconds()}
	// The workers have left, so this is all.
	ledger, _, err := daily.ReadLedger(p.path, 0)
	if err != nil {
		return nil, fmt.Errorf("read the ledger of actions: %w", err)
	}
	var v daily.Verdict
	for _, day := range p.days {
		rep.Flights += p.plain[day].Flights
		var doc struct {
			State  string       `json:"state"`
			Result daily.Report `json:"result"`
		}
		if err := json.Unmarshal(stored.Docs[spaceOf(day)]["run_"+dailyRun], &doc); err != nil {
			return nil, fmt.Errorf("the document of the run of %s: %w", day, err)
		}
		v.Add(daily.Judge(&doc.Result, p.plain[day], entriesOf(ledger, day)))
	}
	slices.Sort(v.Differences)
	rep.Actions, rep.Attempts, rep.Failures, rep.Repeated = v.Actions, v.Attempts, v.Failures, v.Repeated
	rep.Verified, rep.Differences = len(v.Differences) == 0, v.Differences
	return rep, nil
}

// entriesOf returns the part of a ledger that is about a day. Keys begin with the space.
func entriesOf(ledger []daily.Entry, day string) (list []daily.Entry) {
	for _, e := range ledger {
		if strings.HasPrefix(e.Key, spaceOf(day)+"/") {
			list = append(list, e)
		}
	}
	return list
}
