package demo

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/settlehq/settle/examples/flights/daily"
	"github.com/settlehq/settle/flow"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/workflow"
)

// The stages of a run of package daily.
const (
	reading  = "reading"
	checking = "checking"
	summing  = "summing"
	sleeping = "sleeping"
	waiting  = "waiting"
	printing = "publishing"
)

// stageOf returns the stage of a run, by what it waits for.
func stageOf(s *flow.Status) string {
	if s == nil || s.Graph == nil || len(s.Positions) == 0 {
		return ""
	}
	at := s.Positions[0]
	switch n := &s.Graph.Funcs[at.Func].Nodes[at.Node]; n.Kind {
	case workflow.Join:
		return checking
	case workflow.Sleep:
		return sleeping
	case workflow.Wait:
		return waiting
	case workflow.Action:
		return map[string]string{"read_chunk": reading, "sum_up": summing, "publish": printing}[n.Calls[0].Action]
	}
	return ""
}

// narrator writes what happens in a pipeline, a line each, with the time since its start.
type narrator struct {
	out    io.Writer
	style  style
	began  time.Time
	mu     sync.Mutex
	failed map[string]bool // spaces in which an action has failed
}

func newNarrator(out io.Writer) *narrator {
	return &narrator{out: out, style: styleFor(out), began: time.Now(), failed: map[string]bool{}}
}

// line writes a line about a day, or about the deployment.
func (n *narrator) line(day, format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, _ = fmt.Fprintf(n.out, "%s  %s  %s\n", n.style.faint(fmt.Sprintf("%5.1f s", time.Since(n.began).Seconds())),
		n.style.cyan(fmt.Sprintf("%-10s", day)), fmt.Sprintf(format, args...)) // an error means that the terminal is gone
}

// heading describes the pipeline, and starts the time.
func (n *narrator) heading(p *pipeline) {
	sum := 0
	for _, want := range p.plain {
		sum += want.Flights
	}
	where := Plan{Workers: p.o.Workers, Processes: p.o.Processes, Partitions: p.o.Partitions, Server: p.place.describe(p.o.Fsync)}.where()
	_, _ = fmt.Fprintf(n.out, "%s  %s, %s\n%s\n\n", n.style.bold("settle demo pipeline"), count(len(p.days), "day"), count(sum, "flight"), n.style.faint(where))
	n.began = time.Now()
}

// stage reports that a run has come to a stage.
func (n *narrator) stage(day, stage string, s *flow.Status) {
	at := workflow.Position{}
	if len(s.Positions) > 0 {
		at = s.Positions[0]
	}
	switch stage {
	case reading:
		n.line(day, "reads the file of the day, a chunk after the other")
	case checking:
		n.line(day, "checks %s at the same time", count(at.Need, "flight"))
	case summing:
		of := 0
		if len(at.Rounds) > 0 {
			of = at.Rounds[0].Of
		}
		n.line(day, "sums up %s, one after the other", count(of, "airport"))
	case sleeping:
		n.line(day, "sleeps: nothing but a timer is left of it")
	case waiting:
		n.line(day, "%s", n.style.bold("waits for the signal "+daily.Approve))
	case printing:
		n.line(day, "publishes the report")
	}
}

// failures reports the first action of each run that failed.
func (n *narrator) failures(list []daily.Entry) {
	for _, e := range list {
		space, _, _ := strings.Cut(e.Key, "/")
		if e.What == daily.Failed && !n.failed[space] {
			n.failed[space] = true
			n.line(strings.ReplaceAll(space, "-", "/"), "%s failed (Offline), and is tried again", e.Action)
		}
	}
}

// quarter reports the number of actions that were performed.
func (n *narrator) quarter(share, ended, total int) {
	n.line("", "%s", n.style.bold(fmt.Sprintf("%3d %%  %s of %s performed", share, display.Grouped(ended), count(total, "action"))))
}

// kills reports that a worker was killed.
func (n *narrator) kills(victim string, process bool, serves []string) {
	how := "killed"
	if process {
		how = "killed by SIGKILL"
	}
	n.line("", "%s, which served %s", n.style.yellow(victim+" "+how), strings.Join(serves, ", "))
}

// Summary writes the figures and, if verify is set, what was verified.
func (r *PipelineReport) Summary(w io.Writer, verify bool) error {
	s := styleFor(w)
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %s %s\n", s.faint(fmt.Sprintf("%-10s", name)), fmt.Sprintf(format, args...))
	}
	b.WriteString("\n")
	row("runs", "%s done in %.1f s, %s in %s", count(r.Days, "run"), r.Seconds, count(r.Actions, "action"), count(r.Commits, "commit"))
	row("attempts", "%s: %s failed and were tried again, %s were begun again after a worker had died", count(r.Attempts, "attempt"), display.Grouped(r.Failures), display.Grouped(r.Repeated))
	if r.Killed > 0 {
		row("killed", "%s; %s of a space by another worker", count(r.Killed, "worker"), count(r.Takeovers, "takeover"))
	}
	if verify {
		r.verification(&b, s)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *PipelineReport) verification(b *strings.Builder, s style) {
	b.WriteString("\n")
	if !r.Verified {
		fmt.Fprintf(b, "%s: %s\n\n", s.bold(s.red("NOT VERIFIED")), count(len(r.Differences), "difference"))
		for _, d := range r.Differences[:min(len(r.Differences), maxDifferences)] {
			fmt.Fprintf(b, "  %s\n", d)
		}
		return
	}
	fmt.Fprintf(b, "%s by a plain NATS client, against one plain loop over the same flights\n\n", s.bold(s.green("Verified")))
	for _, line := range [][2]string{
		{"reports agree", fmt.Sprintf("those of %s are equal to those of the loop, %s in all", count(r.Days, "run"), count(r.Flights, "flight"))},
		{"nothing lost", fmt.Sprintf("each of %s that was performed is in its report", count(r.Actions, "action"))},
		{"nothing twice", fmt.Sprintf("and is there once, however many of the %s it had", count(r.Attempts, "attempt"))},
	} {
		fmt.Fprintf(b, "  %s %-14s  %s\n", s.green("✓"), line[0], s.faint(line[1]))
	}
}

// JSON returns the figures as JSON.
func (r *PipelineReport) JSON() ([]byte, error) { return figuresJSON(r) }
