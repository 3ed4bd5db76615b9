//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/settlehq/settle/test/chaos/soak"
)

// soakCmd makes a long run in pieces: chaos with one server and with three, and power cuts.
type soakCmd struct {
	Book   string        `help:"File to which each piece is added, and from which the run goes on." default:"test/chaos/soak.jsonl" placeholder:"FILE"`
	For    time.Duration `help:"Begin no piece after so long. 0: go on until the goal is reached." default:"0"`
	Piece  time.Duration `help:"Duration of the faults in a piece." default:"10m"`
	Rate   float64       `help:"Events that all clients of a piece together send in a second; a quarter of them in a piece with power cuts, whose disks are in memory." default:"600"`
	Cuts   int           `help:"Power cuts that a piece with power cuts has at least." default:"20"`
	Dir    string        `help:"Where the reports of the pieces go." default:"bin/chaos" placeholder:"DIR"`
	Report bool          `help:"Print the report of the book, and run nothing."`
}

// profile is a kind of piece: the options of the chaos, and whether the power is cut.
type profile struct {
	name  string
	power bool
	args  []string
}

// cutPiece is the maximum duration of a piece with power cuts, which is doubled if the cuts are slow.
const cutPiece = 3 * time.Minute

// deadly are the faults that end processes; some profiles inject them in quick succession.
var deadly = strings.Join([]string{faultKillWorker, faultKillWorkers, faultKillCoordinator, faultKillNode, faultKillLeader, faultKillAll}, ",")

// together makes the servers of a cluster end only all at once, which is rare in the other profiles.
var together = strings.Join([]string{faultKillWorker, faultKillWorkers, faultKillCoordinator, faultKillAll}, ",")

// powerless returns the options for power cuts of a kind at an interval, with few other faults: most
// workers and coordinators survive.
func powerless(kind, every string, args ...string) []string {
	only := strings.Join([]string{kind, faultKillWorker, faultKillCoordinator, faultDeploy}, ",")
	return append(args, "--power", "--only", only, "--server-every", every, "--every", "15s")
}

// profiles are run in turn.
var profiles = []profile{
	{"three servers, all faults", false, []string{"--topology", topologyCluster}},
	{"three servers, kills", false, []string{"--topology", topologyCluster, "--only", deadly, "--server-every", "8s", "--every", "1s"}},
	{"power cuts, one server, fsync always", true, powerless(faultPower, "4s", "--topology", topologySingle, "--sync", "always")},
	{"one server, fsync always, all faults", false, []string{"--topology", topologySingle}},
	{"one server, fsync always, kills", false, []string{"--topology", topologySingle, "--only", deadly, "--server-every", "8s", "--every", "1s"}},
	{"power cuts, three servers at once, fsync always", true, powerless(faultPowerAll, "1s", "--topology", topologyCluster, "--sync", "always", "--partitions", "4")},
	{"three servers, the log is purged", false, []string{"--topology", topologyCluster, "--purge", strconv.Itoa(1 << 20)}},
	{"power cuts, one server, fsync every 2 minutes", true, powerless(faultPower, "4s", "--topology", topologySingle, "--sync", "interval")},
	{"three servers, all killed at once", false, []string{"--topology", topologyCluster, "--only", together, "--server-every", "8s", "--every", "2s"}},
}

// Run makes pieces until the goal is reached, the time is over, or a piece is not sound.
func (s *soakCmd) Run() error {
	if s.Report {
		pieces, err := soak.Read(s.Book)
		fmt.Print(soak.Report(pieces, soak.Full))
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	began := time.Now()
	for ctx.Err() == nil && (s.For == 0 || time.Since(began) < s.For) {
		pieces, err := soak.Read(s.Book)
		if err != nil {
			return err
		}
		if soak.Reached(pieces, soak.Full) {
			fmt.Fprintln(os.Stderr, "the goal is reached")
			return nil
		}
		p := soak.Piece{
			Profile: profiles[len(pieces)%len(profiles)].name, Seed: uint64(len(pieces) + 1),
			At: time.Now().UTC().Truncate(time.Second), Commit: commit(ctx),
		}
		if err := s.run(ctx, &p, &profiles[len(pieces)%len(profiles)]); err != nil {
			return fmt.Errorf("piece %d, %s: %w", len(pieces)+1, p.Profile, err)
		}
		if err := soak.Add(s.Book, &p); err != nil {
			return err
		}
		if !p.Sound() {
			return fmt.Errorf("piece %d, %s, seed %d, is not sound: %v", len(pieces)+1, p.Profile, p.Seed, p.Violations)
		}
	}
	return nil
}

func (s *soakCmd) run(ctx context.Context, p *soak.Piece, how *profile) error {
	fmt.Fprintf(os.Stderr, "%s: %s, seed %d\n", p.At.Format(time.DateTime), p.Profile, p.Seed)
	result := filepath.Join(s.Dir, "piece.json")
	self, err := os.Executable()
	if err != nil {
		return err
	}
	_ = os.Remove(result) // it may not exist
	ended := command(ctx, self, s.args(p, how, result)...).Run()
	data, err := os.ReadFile(result)
	if err != nil {
		return errors.Join(ended, err) // it ended without a verdict
	}
	var r soak.Piece
	err = json.Unmarshal(data, &r)
	r.Profile, r.Seed, r.At, r.Commit = p.Profile, p.Seed, p.At, p.Commit
	*p = r
	return err
}

// args returns the arguments of a piece.
func (s *soakCmd) args(p *soak.Piece, how *profile, result string) []string {
	lasts, rate := s.Piece, s.Rate
	cuts := 0
	if how.power {
		lasts, rate, cuts = min(lasts, cutPiece), rate/4, s.Cuts
	}
	args := []string{
		"run", "--result", result, "--dir", s.Dir, "--tell", "1m", "--duration", lasts.String(),
		"--rate", strconv.FormatFloat(rate, 'f', -1, 64), "--seed", strconv.FormatUint(p.Seed, 10),
		"--min-cuts", strconv.Itoa(cuts),
	}
	return append(args, how.args...)
}

// command returns a process whose output is shown, and which receives an interrupt when ctx ends.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.Stdout, c.Stderr = os.Stderr, os.Stderr
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = time.Minute
	return c
}

// commit returns the commit of the working tree.
func commit(ctx context.Context) string {
	head, err := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	name := strings.TrimSpace(string(head))
	if changes, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--untracked-files=no", ":!test/chaos/soak.jsonl").Output(); err != nil || len(changes) > 0 {
		name += "+"
	}
	return name
}

// result writes the result of a run, for soak.
func (c *chaos) result(file string) error {
	n := &c.check.Counts
	kills := c.nem.killed
	p := soak.Piece{
		Seconds: int(c.faulty.Seconds()), Acked: n.Acked, Handled: n.Handled,
		Workers: kills["worker"], Coordinators: kills["coordinator"], Servers: kills["server"],
		Cuts: c.nem.cuts, LostToPower: n.LostToPower,
		Faults: map[string]int{}, Violations: map[string]int{},
	}
	for _, e := range c.nem.events {
		switch e.Kind {
		case faultKillAll:
			p.All++
		case faultPower, faultPowerAll, faultBackup, faultKillWorker, faultKillWorkers, faultKillCoordinator, faultKillNode, faultKillLeader:
		default:
			p.Faults[e.Kind]++
		}
	}
	for rule, count := range c.check.Violations { // any order: into a map
		p.Violations[string(rule)] = count
	}
	data, err := json.Marshal(&p)
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o600)
}
