package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Record is the result of a run of the benchmark.
type Record struct {
	When    string    `json:"when"`
	Machine Machine   `json:"machine"`
	Method  string    `json:"method"`
	Figures []*Figure `json:"figures"`
}

// Machine is where the benchmark ran. Load is the load average of one minute, at the start and at the end: above the
// number of processors, others have used the machine, too.
type Machine struct {
	Processor string     `json:"processor"`
	Cores     int        `json:"cores"`
	MemoryGiB float64    `json:"memory_gib"`
	Kernel    string     `json:"kernel"`
	Go        string     `json:"go"`
	Load      [2]float64 `json:"load"`
}

// Figure is one engine at one case of a shape on one site.
type Figure struct {
	Part   string `json:"part"`
	Site   string `json:"site"`
	Shape  string `json:"shape"`
	Case   string `json:"case"`
	Engine string `json:"engine"`
	// Unit is what is counted: events, sent events, chains, reads, actions.
	Unit string `json:"unit"`
	// NotRun is why there are no rounds.
	NotRun string   `json:"not_run,omitempty"`
	Rounds []*Round `json:"rounds,omitempty"`
}

// Round is one measurement. Everything but PerSecond, P50, P99 and Extra is per unit.
type Round struct {
	Units     int64   `json:"units"`
	PerSecond float64 `json:"per_second"`
	// P50 and P99 are microseconds from the start of a unit until its effect is durable and known to the client.
	P50 float64 `json:"p50_us,omitempty"`
	P99 float64 `json:"p99_us,omitempty"`
	// CPU is microseconds of all processes: client, worker, servers.
	CPU float64 `json:"cpu_us"`
	// Client is the client's part of CPU, Servers that of the servers; the rest is the worker's.
	Client  float64 `json:"client_cpu_us"`
	Servers float64 `json:"servers_cpu_us"`
	// What all servers of NATS have received and sent.
	MsgsIn   float64 `json:"in_msgs"`
	MsgsOut  float64 `json:"out_msgs"`
	BytesIn  float64 `json:"in_bytes"`
	BytesOut float64 `json:"out_bytes"`
	// Fsyncs is nil if they could not be counted, Allocs if the worker is not a process of Go.
	Fsyncs *float64 `json:"fsyncs,omitempty"`
	Allocs *float64 `json:"allocs,omitempty"`
	// Extra has what only this shape measures.
	Extra map[string]float64 `json:"extra,omitempty"`
}

// Key identifies a figure.
func (f *Figure) Key() string {
	return strings.Join([]string{f.Part, f.Site, f.Shape, f.Case, f.Engine}, " / ")
}

// Find returns the figure of the same place, adding it to the record if there is none.
func (r *Record) Find(like Figure) *Figure {
	for _, f := range r.Figures {
		if f.Key() == like.Key() {
			return f
		}
	}
	r.Figures = append(r.Figures, &like)
	return &like
}

// Write stores the record, and is called after each measurement, so that a run that is interrupted leaves what it has.
func (r *Record) Write(file string) error {
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}

// Read reads a record.
func Read(file string) (*Record, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := &Record{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(file), err)
	}
	return r, nil
}

// ThisMachine describes the machine.
func ThisMachine() Machine {
	m := Machine{Processor: runtime.GOARCH, Cores: runtime.NumCPU(), Go: runtime.Version(), Kernel: runtime.GOOS}
	m.Load[0] = Load()
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
				m.Processor = strings.TrimSpace(value)
				break
			}
		}
	}
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		if f := strings.Fields(string(text)); len(f) > 1 {
			kib, _ := strconv.ParseFloat(f[1], 64)
			m.MemoryGiB = float64(int(kib/1024/1024*10)) / 10
		}
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel += " " + strings.TrimSpace(string(text))
	}
	return m
}

// Load returns the load average of one minute, 0 if it is unknown.
func Load() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), " ")
	load, _ := strconv.ParseFloat(first, 64)
	return load
}

// Parts are the processes of an engine, besides the client, which is this process, and the servers of NATS.
type Parts struct {
	Workers []*Process
	// Others are process numbers of other servers, with their children.
	Others []int
	// InClient reports that the worker is in the client's process, so that its allocations are those of both.
	InClient bool
}

// Meter measures a round.
type Meter struct {
	Site        *Site
	Parts       Parts
	CountFsyncs bool

	began   time.Time
	own     Usage
	workers Usage
	servers time.Duration
	others  time.Duration
	traffic Traffic
	fsyncs  bool
}

// Begin begins a round.
func (m *Meter) Begin(ctx context.Context) (err error) {
	if m.CountFsyncs {
		pids := []int{}
		for _, p := range m.Parts.Others {
			pids = append(pids, treeOf(p)...)
		}
		for _, p := range m.Parts.Workers {
			pids = append(pids, p.PID())
		}
		if m.Parts.InClient {
			pids = append(pids, os.Getpid())
		}
		m.fsyncs = m.Site.Servers.CountFsyncs(pids...) == nil
	}
	if m.workers, err = m.usage(); err != nil {
		return err
	}
	if m.traffic, err = m.Site.Servers.Traffic(ctx); err != nil {
		return err
	}
	m.servers, m.others, m.own = m.Site.Servers.CPU(), m.cpuOfOthers(), OwnUsage(false)
	m.began = time.Now()
	return nil
}

// usage returns that of all workers.
func (m *Meter) usage() (sum Usage, err error) {
	for _, p := range m.Parts.Workers {
		u, err := p.Usage(false)
		if err != nil {
			return sum, err
		}
		sum.CPU += u.CPU
		sum.Allocs += u.Allocs
	}
	return sum, nil
}

func (m *Meter) cpuOfOthers() (sum time.Duration) {
	for _, p := range m.Parts.Others {
		for _, pid := range treeOf(p) {
			sum += CPUOf(pid)
		}
	}
	return sum
}

// End ends a round of n units.
func (m *Meter) End(ctx context.Context, n int64, latencies []time.Duration) (*Round, error) {
	took := time.Since(m.began)
	own, servers, others := OwnUsage(false), m.Site.Servers.CPU()-m.servers, m.cpuOfOthers()-m.others
	t, err := m.Site.Servers.Traffic(ctx)
	if err != nil {
		return nil, err
	}
	t = t.Minus(m.traffic)
	worker, err := m.usage()
	if err != nil {
		return nil, err
	}
	worker.CPU, worker.Allocs = worker.CPU-m.workers.CPU, worker.Allocs-m.workers.Allocs
	own.CPU, own.Allocs = own.CPU-m.own.CPU, own.Allocs-m.own.Allocs
	units := max(float64(n), 1)
	micros := func(d time.Duration) float64 { return round(float64(d.Nanoseconds()) / 1e3 / units) }
	r := &Round{
		Units: n, PerSecond: round(float64(n) / took.Seconds()),
		CPU: micros(own.CPU + worker.CPU + servers + others), Client: micros(own.CPU), Servers: micros(servers + others),
		MsgsIn: round(float64(t.MsgsIn) / units), MsgsOut: round(float64(t.MsgsOut) / units),
		BytesIn: round(float64(t.BytesIn) / units), BytesOut: round(float64(t.BytesOut) / units),
	}
	switch {
	case len(m.Parts.Workers) > 0:
		r.Allocs = per(worker.Allocs, units)
	case m.Parts.InClient:
		r.Allocs = per(own.Allocs, units)
	}
	if m.fsyncs {
		count, err := m.Site.Servers.Fsyncs()
		if err != nil {
			return nil, err
		}
		r.Fsyncs = per(count, units)
	}
	if len(latencies) > 0 {
		slices.Sort(latencies)
		at := func(q float64) float64 {
			return round(float64(latencies[min(len(latencies)-1, int(q*float64(len(latencies))))].Nanoseconds()) / 1e3)
		}
		r.P50, r.P99 = at(0.5), at(0.99)
	}
	return r, nil
}

func per[N int64 | uint64](n N, units float64) *float64 {
	v := round(float64(n) / units)
	return &v
}

// round keeps four digits, so that records can be read and compared.
func round(v float64) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	return r
}

// treeOf returns a process and its descendants.
func treeOf(pid int) []int {
	list := []int{pid}
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range tasks {
		text, _ := os.ReadFile(file)
		for _, child := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(child); err == nil {
				list = append(list, treeOf(n)...)
			}
		}
	}
	return list
}
