package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"
)

// Faults.
const (
	power = "power"
	kill  = "kill"
)

// plan describes a trial.
type plan struct {
	Nodes, Hit int
	Sync       string
	Fault      string
	Torn       bool
	Cuts       int
	Seed       uint64 `json:"-"`
	Spaces     int
	Verbose    bool `json:"-"`
}

// row is the result over all cuts.
type row struct {
	plan
	// Acked counts events that were acknowledged to clients, Receipts the receipts that clients
	// received.
	Acked, Receipts int
	// LostEvents and LostReceipts count those of them that are lost, LossyCuts the cuts after which any
	// were lost.
	LostEvents, LostReceipts, LossyCuts int
	// Broken counts deployments that did not recover, or did not handle events acknowledged afterwards;
	// a new one is made then. Refused counts the lossy cuts after which a worker or a reader refused a
	// stream that had lost messages; a new deployment is made then, too. After counts events that were
	// acknowledged and handled after lossy cuts.
	Broken, Refused, After int
	// Duplicates counts second receipts, Disorder receipts out of the order of their lane.
	Duplicates, Disorder int
	// DroppedBytes is the amount of data that the disks have dropped.
	DroppedBytes int64
	Why          []string `json:",omitempty"`
}

func (p plan) check() error {
	switch {
	case p.Nodes != 1 && p.Nodes != 3:
		return fmt.Errorf("%d servers; use 1 or 3", p.Nodes)
	case p.Hit < 1 || p.Hit > p.Nodes:
		return fmt.Errorf("%d of %d servers cannot be cut", p.Hit, p.Nodes)
	case p.Fault != power && p.Fault != kill:
		return fmt.Errorf("fault %q; use %s or %s", p.Fault, power, kill)
	}
	return nil
}

// run makes all cuts. A deployment is used as long as it recovers.
func (p plan) run(ctx context.Context, log io.Writer) (*row, error) {
	r := &row{plan: p}
	if err := p.check(); err != nil {
		return r, err
	}
	dir, err := os.MkdirTemp("", "settle-powerloss-")
	if err != nil {
		return r, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary, err := buildServer(ctx, dir)
	if err != nil {
		return r, err
	}
	chance := rand.New(rand.NewPCG(p.Seed, 0))
	for life := 0; r.Cuts > 0 && ctx.Err() == nil; life++ {
		if err := p.live(ctx, log, r, fmt.Sprintf("%s/%d", dir, life), binary, chance); err != nil {
			return r, err
		}
	}
	r.Cuts = p.Cuts - r.Cuts
	return r, ctx.Err()
}

// live uses one deployment until it refuses to continue, or does not recover. Losses of one cut are
// removed from the book before the next.
func (p plan) live(ctx context.Context, log io.Writer, r *row, dir, binary string, chance *rand.Rand) error {
	c, err := newCluster(dir, binary, p)
	if err != nil {
		return err
	}
	defer c.remove()
	d := newDeployment(c, p.Spaces)
	defer func() {
		acked, receipts := d.book.counts()
		r.Acked += acked
		r.Receipts += receipts
		r.DroppedBytes += c.dropped()
		d.kill()
	}()
	if err := d.start(ctx); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	c.syncAll()
	for r.Cuts > 0 && ctx.Err() == nil {
		r.Cuts--
		found, err := p.cut(ctx, d, r.Cuts, chance)
		if p.Verbose {
			acked, receipts := d.book.counts()
			fmt.Fprintf(log, "%s cut, %d to go: %d acknowledged, %d receipts: %s, %v\n", time.Now().Format(time.TimeOnly), r.Cuts, acked, receipts, found, err)
		}
		r.add(found, err)
		if err != nil || found.refused {
			return nil
		}
	}
	return nil
}

// found is the result of one cut.
type found struct {
	events, receipts     []event
	refused              bool
	after                int // events that were acknowledged and handled since
	duplicates, disorder int
}

func (f found) lost() bool { return len(f.events)+len(f.receipts) > 0 }

func (f found) String() string {
	return fmt.Sprintf("lost %d events and %d receipts, refused %v, %d handled afterwards, %d duplicates, %d out of order",
		len(f.events), len(f.receipts), f.refused, f.after, f.duplicates, f.disorder)
}

func (r *row) add(f found, err error) {
	r.LostEvents += len(f.events)
	r.LostReceipts += len(f.receipts)
	r.Duplicates += f.duplicates
	r.Disorder += f.disorder
	r.After += f.after
	if f.lost() {
		r.LossyCuts++
		if f.refused {
			r.Refused++
		}
	}
	if err != nil {
		r.Broken++
		r.Why = append(r.Why, err.Error())
	}
}

// cut lets the deployment work, cuts the power, restarts the servers and examines the result. The
// processes that use the servers survive every other cut; otherwise they are restarted, as if they ran
// on the same machines.
func (p plan) cut(ctx context.Context, d *deployment, n int, chance *rand.Rand) (found, error) {
	d.work(ctx, 300*time.Millisecond+time.Duration(chance.IntN(900))*time.Millisecond)
	survive := n%2 == 0
	if !survive {
		d.freeze()
	}
	victims := chance.Perm(p.Nodes)[:p.Hit]
	var torn *rand.Rand
	if p.Torn {
		torn = chance
	}
	if err := d.c.cut(victims, p.Fault == power, torn); err != nil {
		return found{}, err
	}
	d.rest()
	if err := d.c.wait(ctx); err != nil {
		return found{}, err
	}
	f, err := d.missing(ctx)
	if err != nil {
		return f, fmt.Errorf("look what is there: %w", err)
	}
	if f.lost() {
		d.lossy = true
		d.book.forget(f)
	}
	before, _ := d.book.counts()
	if !survive {
		if err := d.begin(ctx); err != nil && !f.lost() {
			return f, fmt.Errorf("begin anew: %w", err)
		}
	}
	d.work(ctx, 300*time.Millisecond)
	d.rest()
	err = d.settled(ctx)
	f.refused = d.complaints() > 0
	if err == nil && !f.refused {
		f.duplicates, f.disorder, err = d.audit(ctx)
		if after, _ := d.book.counts(); f.lost() {
			f.after = after - before
		}
	}
	return f, err
}
