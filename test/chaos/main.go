//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/settlehq/settle/internal/optionflags"
	"github.com/settlehq/settle/test/chaos/history"
)

const (
	topologySingle  = "single"
	topologyCluster = "cluster"
)

// options are the options of a run.
type options struct {
	Topology     string        `help:"One server that writes through, or a cluster of three that keeps everything three times: ${enum}." enum:"single,cluster" default:"single"`
	Sync         string        `help:"When servers write through: ${enum}. Default: always for one server, interval for a cluster." enum:"default,always,interval" default:"default"`
	Duration     time.Duration `help:"Duration of the faults." default:"30m"`
	MinEvents    int           `help:"Go on (at most twice as long) until so many events are handled." default:"0"`
	MinCuts      int           `help:"Go on (at most twice as long) until the power was cut so often." default:"0"`
	MinKills     int           `help:"Go on (at most twice as long) until so many processes were killed." default:"0"`
	Seed         uint64        `help:"Seed of the workload and of the faults. 0 takes one from the clock." default:"0"`
	Rate         float64       `help:"Events that all clients together send in a second. About as many again are sent by handlers." default:"600"`
	Clients      int           `help:"Clients." default:"16"`
	Spaces       int           `help:"Spaces." default:"24"`
	Hosted       int           `help:"Number of spaces, the last ones, that run a program in Starlark; new versions of it are deployed during the run." default:"4"`
	Skew         time.Duration `help:"By how much the clocks of workers may be off, each by an amount of its own." default:"2s"`
	Partitions   int           `help:"Partitions." default:"8"`
	Workers      int           `help:"Worker processes." default:"3"`
	Coordinators int           `help:"Coordinator processes." default:"2"`
	Every        time.Duration `help:"Mean time between two faults of workers and coordinators; 0 for none." default:"1500ms"`
	ServerEvery  time.Duration `help:"Mean time between two faults of servers; 0 for none." default:"25s"`
	Only         string        `help:"Inject only these kinds of faults, separated by commas." placeholder:"KINDS"`
	Brief        bool          `help:"Hold no fault for more than 3 s, and leave out those that need longer: for runs of a minute."`
	NoNetwork    bool          `help:"Run all processes on one network, without partitions."`
	NoDisk       bool          `help:"Give no server a small disk, and fill none."`
	Power        bool          `help:"Give the servers disks whose power can be cut, and cut it. Needs /dev/fuse and root; run it from the root of the repository."`
	DiskMiB      int           `help:"Size of the small disk." name:"disk-mib" default:"16384"`
	Purge        int64         `help:"Let workers keep only so many bytes of the log per partition, and purge the rest at once. The run is then judged by what is left: lanes, letters and documents. 0 keeps everything." placeholder:"BYTES"`
	PurgeDelay   time.Duration `help:"How long a checkpoint has to stand before the log behind it goes." default:"1s"`
	Idle         time.Duration `help:"How long a space is at rest before it is unloaded from memory." default:"5s"`
	Patience     time.Duration `help:"How long everything may take to come to rest when no fault is left." default:"3m"`
	Break        string        `help:"Break the system on purpose, to see that it is found: fence, release." placeholder:"WHAT"`
	Lie          string        `help:"Show the checker a false log, to see that it is found: lost, twice, order, value." placeholder:"WHAT"`
	Result       string        `help:"File for the result of the run as JSON." placeholder:"FILE" hidden:""`
	Dir          string        `help:"Where the report goes." default:"bin/chaos" placeholder:"DIR"`
	Data         string        `help:"Where the data of the run lives while it lasts. Default: the directory for temporary files." placeholder:"DIR"`
	Keep         bool          `help:"Keep the data of a run without violations, too."`
	Tell         time.Duration `help:"How often to say how far it is." default:"10s"`
}

func (o *options) workload() history.Workload {
	return history.Workload{Seed: o.Seed, Spaces: o.Spaces, Clients: o.Clients, Hosted: o.Hosted}
}

// historyBytes returns the size of the log that workers keep; without a limit unless it is to be purged.
func (o *options) historyBytes() int64 {
	if o.Purge > 0 {
		return o.Purge
	}
	return -1
}

func (o *options) fsync() string {
	switch {
	case o.Sync != "default":
		return o.Sync
	case o.Topology == topologyCluster:
		return "interval"
	}
	return "always"
}

// lossy reports whether a power failure loses acknowledged data.
func (o *options) lossy() bool { return o.Power && o.fsync() != "always" }

func (o *options) fill() error {
	if o.Seed == 0 {
		o.Seed = uint64(time.Now().UnixNano()) % 1e9
	}
	if o.Spaces < 2 || o.Spaces > 99 || o.Clients < 2 || o.Clients > 999 || o.Workers < 1 || o.Coordinators < 1 || o.Partitions < 1 || o.Partitions > 64 {
		return errors.New("use 2 to 99 spaces, 2 to 999 clients, 1 to 64 partitions, at least one worker and one coordinator")
	}
	if o.Hosted < 0 || o.Hosted > o.Spaces {
		return fmt.Errorf("%d hosted spaces of %d", o.Hosted, o.Spaces)
	}
	if o.lossy() && (o.Topology == topologyCluster || o.Purge > 0) {
		return errors.New("with power cuts, servers of a cluster have to write through (--sync always), and so has one whose log is purged")
	}
	return nil
}

// runCmd is the command of a run.
type runCmd struct{ options }

// Run runs it. Exit status 1 is a violation.
func (r *runCmd) Run() error {
	if err := r.fill(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	sound, err := r.run(ctx)
	if err == nil && !sound {
		return errors.New("the run is not sound: see the report")
	}
	return err
}

type commands struct {
	Run         runCmd          `cmd:"" default:"withargs" help:"Run a deployment, break it in every way, and check what it has stored."`
	Soak        soakCmd         `cmd:"" help:"Make a long run in pieces, with one server and with three, and with power cuts, and keep the book."`
	Nats        natsRole        `cmd:"" hidden:""`
	Worker      workerRole      `cmd:"" hidden:""`
	Coordinator coordinatorRole `cmd:"" hidden:""`
}

func main() {
	var c commands
	k := kong.Parse(&c, optionflags.OfBus(), kong.Name("chaos"), kong.Description("Real processes, killed and cut off, and a check of every event."))
	if err := k.Run(); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}
