package sim

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Seeds run in child processes with one processor, no garbage collection during a seed, and no
// preemption between two instructions. None of this should matter, because the checks do not depend on
// the order within one instant, but it makes replays more reliable.

// part is the seeds that a child process runs, passed in the environment.
type part struct {
	Ranges []seedRange
	Hashes bool
	// Stop ends the part with the first seed that fails: for mutations.
	Stop bool
}

type seedRange struct{ First, Seeds uint64 }

// all returns the seeds of a part, in order.
func (p *part) all() (list []uint64) {
	for _, r := range p.Ranges {
		for i := range r.Seeds {
			list = append(list, r.First+i)
		}
	}
	return list
}

const partEnv = "SETTLE_SIM_PART"

// outcomes are the results of one process, or of several combined.
type outcomes struct {
	Seeds, Steps, Failed int
	Counts               map[string]int
	// Reports describe the first seeds that failed, Hashes are those of all seeds, if requested.
	Reports []string
	Hashes  map[uint64]string
	// Commits are sums over what each seed has appended.
	Commits map[uint64]uint64
}

const (
	seedLine = "sim: seed "
	doneLine = "sim: done "
)

// runPart is the main function of a child process.
func runPart(t *testing.T, text string) {
	var p part
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	out := outcomes{Counts: map[string]int{}, Hashes: map[uint64]string{}, Commits: map[uint64]uint64{}}
	for i, seed := range p.all() {
		fmt.Println(seedLine + strconv.FormatUint(seed, 10)) // in case the seed kills this process
		collect(uint64(i))
		plan := newPlan(seed)
		r := simulate(t, plan, false)
		out.Seeds++
		out.Steps += r.steps
		for what, n := range r.counts { // any order: sums
			out.Counts[what] += n
		}
		if p.Hashes {
			out.Hashes[seed] = fmt.Sprintf("%x", r.hash)
			out.Commits[seed] = r.commits
		}
		if len(r.wrong) > 0 {
			out.Failed++
			if len(out.Reports) < 2 {
				runs := shrinkRuns
				if p.Stop {
					runs /= 5
				}
				out.Reports = append(out.Reports, report(t, plan, &r, runs))
			} else if len(out.Reports) < 50 {
				out.Reports = append(out.Reports, fmt.Sprintf("seed %d: %s", seed, r.wrong[0]))
			}
			if p.Stop {
				break
			}
		}
	}
	data, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(doneLine + string(data))
}

// inChildren runs seeds in two processes.
func inChildren(t *testing.T, parts ...part) []outcomes {
	t.Helper()
	results := make([]outcomes, len(parts))
	var all sync.WaitGroup
	for i, p := range parts {
		all.Go(func() { results[i] = inChild(t, p) }) // ends with the process
	}
	all.Wait()
	return results
}

func inChild(t *testing.T, p part) (out outcomes) {
	data, err := json.Marshal(p)
	if err != nil {
		t.Error(err)
		return out
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSeeds$", "-test.timeout=0")
	cmd.Env = append(os.Environ(), partEnv+"="+string(data), "GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1")
	var complaints tail
	cmd.Stderr = &complaints
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Error(err)
		return out
	}
	last, done := "", false
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		text := lines.Text()
		if seed, ok := strings.CutPrefix(text, seedLine); ok {
			last = seed
		} else if data, ok := strings.CutPrefix(text, doneLine); ok {
			if err := json.Unmarshal([]byte(data), &out); err != nil {
				t.Error(err)
			}
			done = true
		} else {
			_, _ = complaints.Write([]byte(text + "\n"))
		}
	}
	if err := cmd.Wait(); err != nil || !done {
		t.Errorf("seed %s ends the process that runs it: %v\n%s\nreplay it:\n  go test ./test/sim -run 'TestSeed$' -seed %s -v", last, err, &complaints, last)
	}
	return out
}

// tail keeps the beginning of a process's error output.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if room := 8<<10 - len(t.text); room > 0 {
		t.text = append(t.text, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
