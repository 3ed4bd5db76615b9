package host

import (
	"context"
	"errors"

	"github.com/settlehq/settle/model"
)

// remoteCommits is a host's subscription to the log of its space while several runtimes append to it, because
// the host or another runtime is attached. An owner with nothing to append would not notice their commits.
// Without a subscription, a host learns of other runtimes' commits when its own is refused, which suffices
// while there is one runtime per space.
//
// It avoids conflicts and decides nothing: a host that learns of a commit late is refused.
type remoteCommits struct {
	*loop
	// seen is called with each entry, outside of the loop.
	seen func(model.LogEntry)
	// attached counts the runtimes that hold a lease without a document.
	attached int
	cancel   context.CancelFunc
	// received passes entries to the loop, which takes them when it has nothing in flight. The log reader waits
	// until then.
	received chan model.LogEntry
}

// logCore is the position of a space in its log, as its core has it.
type logCore interface {
	Seq() uint64
	Settled() bool
	Integrate(entries ...model.LogEntry) error
}

// integrator counts the commits of other runtimes that a core integrates.
type integrator struct {
	logCore
	reads *reads
}

func (i integrator) Integrate(entries ...model.LogEntry) error {
	i.reads.integrated += uint64(len(entries))
	return i.logCore.Integrate(entries...)
}

// integrator returns the core with that count, which the reads of documents need.
func (h *host) integrator() logCore {
	if h.graph == nil {
		return h.core
	}
	return integrator{h.core, &h.graph.reads}
}

// attend records that another runtime has attached to the space, or has detached.
func (r *remoteCommits) attend(core logCore, on bool) {
	switch {
	case on:
		if r.attached++; r.attached == 1 {
			r.follow(core)
		}
	case r.attached > 0:
		if r.attached--; r.attached == 0 {
			r.cancel()
			r.received = nil
		}
	}
}

// follow subscribes to the log of the space.
func (r *remoteCommits) follow(core logCore) {
	ctx, cancel := context.WithCancel(r.ctx)
	heard := make(chan model.LogEntry, readPage)
	r.cancel, r.received = cancel, heard
	after := core.Seq()
	r.beside(func() { // ends with ctx
		r.retry(ctx, "follow the log of a space", func(ctx context.Context) error {
			err := r.bus.FollowSpace(ctx, r.space, after, func(e model.LogEntry) {
				r.seen(e)
				select {
				case heard <- e:
					after = e.Seq
					r.wake()
				case <-ctx.Done():
				}
			})
			if errors.Is(err, model.ErrRewound) {
				r.fail("follow the log", err)
			}
			if errors.Is(err, model.ErrPurged) {
				after = r.passOver(ctx, core, after, err)
			}
			return err
		})
	})
}

// passOver continues after commits that were purged before they were read, if the core has them by now. If it
// does not, it can never learn their contents, and the host ends: its successor loads the space from the
// checkpoint that covers them.
func (r *remoteCommits) passOver(ctx context.Context, core logCore, after uint64, gap error) uint64 {
	at := make(chan uint64, 1)
	r.call(func() {
		if core.Seq() <= after {
			r.fail("follow the log", gap)
		}
		at <- core.Seq()
	})
	select {
	case seq := <-at:
		return max(after, seq)
	case <-ctx.Done():
		return after
	}
}

// take makes the core integrate the commits of other runtimes, unless it has an append
// in flight: that one either came first, or will be refused.
func (r *remoteCommits) take(core logCore) {
	if len(r.received) == 0 || !core.Settled() {
		return
	}
	var entries []model.LogEntry
	for range len(r.received) {
		entries = append(entries, <-r.received) // the loop is the only receiver
	}
	if err := core.Integrate(entries...); err != nil {
		r.fail("integrate the commits of other runtimes", err)
	}
}

// readMissed reads the commits that the host has missed: the bucket or the log has a state that is ahead of
// the host, so another runtime has committed. A host with something to append learns of it by a refusal; one
// without would retry its save forever, and hold the lane position back.
func (r *remoteCommits) readMissed(core logCore) {
	after := core.Seq()
	r.beside(func() { // ends with the read
		entries, err := r.bus.ReadLog(r.ctx, r.space, after, readPage)
		r.call(func() {
			if err != nil {
				r.report("read log", err)
			}
			for _, e := range entries {
				if !core.Settled() {
					return // the append in flight will be refused
				}
				if err := core.Integrate(e); err != nil {
					r.fail("integrate the commit of another runtime", err)
					return
				}
			}
			if len(entries) == readPage {
				r.readMissed(core) // there may be more
			}
		})
	})
}
