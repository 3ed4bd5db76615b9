package host

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/space/budget"
)

// Options are the tunable limits and intervals of a worker. The zero value of each field stands for its
// default. Workers of one deployment may differ. The help tags are the texts of the flags that package
// options derives.
type Options struct {
	// Heartbeat is how often the worker announces itself and checks for other workers that have gone; default
	// 500 ms. A dead process is detected within two heartbeats.
	Heartbeat time.Duration `help:"How often the worker announces itself and checks for dead workers."`
	// MemberTTL is how long a member whose heartbeat has stopped, but whose process answers,
	// keeps its partitions; default 15 s, because the store itself may be silent
	// for 4 to 9 s while it elects a leader.
	MemberTTL time.Duration `help:"How long a worker that hangs keeps its partitions."`
	// Weight is this worker's share of the partitions relative to others; default 1.
	Weight float64 `help:"This worker's share of the partitions, relative to other workers."`
	// Handover is how long a partition that moves to another worker may take to finish
	// running work and save, until it is cut off; default 5 s. The other worker waits for
	// at most slightly longer. It is also how long Stop retries while no
	// server can be reached.
	Handover time.Duration `help:"How long a running handler may continue while its partition moves to another worker."`

	// Checkpoint is how often changed documents are saved; default 1 s. It limits
	// how far the STATE bucket trails the log.
	Checkpoint time.Duration `help:"How often changed documents are saved to the STATE buckets."`
	// Aside is how long a space may hold back the position up to which its partition is known to be done with
	// its lane, until the partition sets it aside (docs/adr/0033); default 5 s.
	Aside time.Duration `help:"How long a space may hold back the position up to which its partition's lane is handled."`
	// History is how long commits stay in the log after no restart needs them:
	// receipts and trees are read from them. The default is the deployment's
	// horizon, plus the hour for which lanes remember events longer.
	History time.Duration `help:"How long to keep commits that only receipts and trees need. Default: the horizon of the deployment plus an hour."`
	// HistoryBytes limits the size of those commits per partition, whatever their age; default 1 GiB,
	// negative for no limit.
	HistoryBytes int64 `help:"Bytes of such commits to keep per partition, whatever their age; negative: no limit."`
	// PurgeDelay is how old a checkpoint must be before commits that it
	// covers are purged; default 3 min, which is longer than servers that do not sync always take to
	// write accepted data to disk (sync_interval, 2 min).
	PurgeDelay time.Duration `help:"How long after a checkpoint the commits that it covers are purged; longer than the sync_interval of the servers."`

	// Idle is how long a space is at rest, with no work and no observer, before it is evicted; default 1 min,
	// negative for never. It is loaded again for the next event or observer.
	Idle time.Duration `help:"How long a space is at rest before it is unloaded from memory; negative: never."`
	// MaxAwake is how many spaces may be in memory; default 10,000, negative for no limit. Beyond it, the
	// spaces that have been at rest longest are evicted at once; if all have work, the limit is exceeded.
	MaxAwake int `help:"The largest number of spaces in memory; beyond it, the spaces at rest for longest are unloaded. Negative: no limit."`
	// Lookups is how many spaces per second may be loaded only to be read or watched; default 1,000, negative for no limit.
	// More wait, behind spaces with an event, which are loaded at once; a space takes about 1 ms of CPU.
	Lookups int `help:"How many spaces per second may be loaded only to be read or watched; negative: no limit."`
	// BacklogBytes limits, roughly, the memory of events that have been read and not
	// handled, over all spaces; default 64 MiB. Beyond it events stay in the stream,
	// except one per space. One space gets at most 8 MiB.
	BacklogBytes int64 `help:"Bytes of events that are read but not handled, over all spaces; further events stay in the stream."`
	// Performing is how many attempts of actions and inputs run at a time, over all spaces; default 256.
	Performing int `help:"The largest number of concurrent attempts of actions and inputs."`

	// RunLimit is how long one run of a handler, computation or effect may take; default 30 s, negative
	// for no limit. The program may set another one for a handler (Within). Code that has
	// not returned a second later is given up (docs/adr/0034): its space is loaded again and continues, for as
	// many attempts as a handler that ends its process has, and its goroutine is left behind. At
	// 100 such goroutines, no more code is given up until some have returned.
	RunLimit time.Duration `help:"How long one run of a handler, computation or effect may take, unless its program sets another limit; negative: no limit."`
	// DocumentWait is how long an event waits for an unreadable document of another space that its handler,
	// or a document that the handler reads, needs; default 5 min, negative for no limit. After that the
	// event fails. The worker that serves the space measures the time, and another owner starts again.
	// The default exceeds the time that a store takes to restart or to elect a leader, since the event becomes
	// a dead letter.
	DocumentWait time.Duration `help:"How long an event waits for a document of another space that cannot be read before it fails; negative: no limit."`

	// Limits bound the commits, the queues and the attempts of each space, Budgets its passes.
	ledger.Limits
	budget.Budgets
}

// Fill replaces zero fields by their defaults, except for MaxCommitBytes and History, which depend on
// the server and on the deployment. It returns an error for the first invalid field.
func (o *Options) Fill() error {
	o.Heartbeat = cmp.Or(o.Heartbeat, 500*time.Millisecond)
	o.MemberTTL = cmp.Or(o.MemberTTL, 15*time.Second)
	o.Weight = cmp.Or(o.Weight, 1)
	o.Handover = cmp.Or(o.Handover, 5*time.Second)
	o.Checkpoint = cmp.Or(o.Checkpoint, time.Second)
	o.Aside = cmp.Or(o.Aside, 5*time.Second)
	o.HistoryBytes = cmp.Or(o.HistoryBytes, 1<<30)
	o.PurgeDelay = cmp.Or(o.PurgeDelay, 3*time.Minute)
	o.Idle = cmp.Or(o.Idle, time.Minute)
	o.MaxAwake = cmp.Or(o.MaxAwake, 10_000)
	o.Lookups = cmp.Or(o.Lookups, 1000)
	o.BacklogBytes = cmp.Or(o.BacklogBytes, 64<<20)
	o.Performing = cmp.Or(o.Performing, 256)
	o.RunLimit = cmp.Or(o.RunLimit, 30*time.Second)
	o.DocumentWait = cmp.Or(o.DocumentWait, 5*time.Minute)
	commit := o.MaxCommitBytes
	err := errors.Join(o.check(), o.Limits.Fill(), o.Budgets.Fill())
	o.MaxCommitBytes = commit
	if o.HistoryBytes < 0 {
		o.HistoryBytes = math.MaxInt64
	}
	return err
}

// check returns an error for the first invalid field, apart from Limits and Budgets.
func (o *Options) check() error {
	for _, f := range []struct {
		name    string
		is      any
		invalid bool
	}{
		{"Heartbeat", o.Heartbeat, o.Heartbeat < 0},
		{"MemberTTL", o.MemberTTL, o.MemberTTL < 0},
		{"Weight", o.Weight, o.Weight < 0 || math.IsNaN(o.Weight) || math.IsInf(o.Weight, 0)},
		{"Handover", o.Handover, o.Handover < 0},
		{"Checkpoint", o.Checkpoint, o.Checkpoint < 0},
		{"Aside", o.Aside, o.Aside < 0},
		{"History", o.History, o.History < 0},
		{"PurgeDelay", o.PurgeDelay, o.PurgeDelay < 0},
		{"BacklogBytes", o.BacklogBytes, o.BacklogBytes < 0},
		{"Performing", o.Performing, o.Performing < 0},
	} {
		if f.invalid {
			return fmt.Errorf("%s is %v; use a positive value, or 0 for the default", f.name, f.is)
		}
	}
	return nil
}

// within returns the options with MaxCommitBytes as the server's max_payload allows it.
func (o Options) within(maxPayload int) Options {
	if half := maxPayload / 2; o.MaxCommitBytes == 0 || o.MaxCommitBytes > half {
		o.MaxCommitBytes = half
	}
	return o
}
