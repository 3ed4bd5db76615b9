package worker

import (
	"errors"
	"fmt"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/lookup"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
	"github.com/settlehq/settle/space"
)

// activate loads the space: the checkpoint, then the log after it. The space is current
// once its takeover is accepted, because that commit is compared with the head of the log. If the
// takeover is refused, and the log shows no newer commit, catchUp asks the leader for the end of the log.
func (h *host) activate() error {
	if err := h.readClock(); err != nil {
		return err
	}
	st, r, err := h.load()
	if err != nil {
		return err
	}
	cfg := h.env.cfg.Space
	cfg.Space, cfg.Runtime = h.space, h.env.cfg.ID
	if limit := h.env.bus.MaxPayload() / 2; cfg.MaxCommitBytes == 0 || cfg.MaxCommitBytes > limit {
		cfg.MaxCommitBytes = limit
	}
	cfg.Trace = h.trace()
	cfg.Guard = h.code.guard()
	cfg.DocumentWait = max(h.env.cfg.DocumentWait, 0)
	if h.core, err = space.New(cfg, h.start.program, r); err != nil {
		return err
	}
	h.core.Rehydrate(observations(st, h.build()))
	h.core.OnError(h.env.cfg.OnError)
	h.core.OnConsole(h.env.cfg.OnConsole)
	for _, o := range h.start.overruns {
		o.Until += h.now()
		h.core.Overran(o)
	}
	if h.start.behind == 0 {
		return nil // the partition's reader began before the first event that is left to do
	}
	if err := h.findBehind(); err != nil {
		return err
	}
	// The lane may be read from a replica that is behind. No later event is handled before
	// the events that were already delivered have been read.
	h.core.LeftInStream(h.start.behind)
	return h.readLane()
}

// readClock reads the server's time, unless the partition has done so.
func (h *host) readClock() error {
	if h.env.home != nil {
		return nil
	}
	err := h.env.clock.Read(h.ctx, h.env.bus, model.PartitionOf(h.space, h.env.bus.Partitions()))
	for err != nil && h.asksAgain("read the clock", err) {
		err = h.env.clock.Read(h.ctx, h.env.bus, model.PartitionOf(h.space, h.env.bus.Partitions()))
	}
	return err
}

// readLane offers the core the events that its lane holds already: events that were delivered
// to an earlier host, which lost the space before it had handled them.
func (h *host) readLane() error {
	for {
		after := h.core.ReadLaneAfter()
		page := h.inbox.page()
		events, err := h.env.bus.ReadLane(h.ctx, h.space, after, page)
		if err != nil {
			return fmt.Errorf("read lane after %d: %w", after, err)
		}
		room := h.offerAll(events)
		if !room || len(events) < page || !h.inbox.queued.hasRoom(h.core) {
			return nil // Ready.Refill requests the rest
		}
	}
}

// offerAll offers events to the core, and reports whether all of them found room.
func (h *host) offerAll(events []model.Message) bool {
	for i := range events {
		if !h.core.Offer(eventOf(&events[i], h.env.horizon)) {
			return false
		}
		h.inbox.read(&events[i])
	}
	return true
}

// dryReads is the number of empty reads after which a reader that expects an entry
// asks the leader whether the log still reaches that far.
const dryReads = 5

// askPause is the pause before a host retries a store that has failed.
const askPause = 200 * time.Millisecond

// checkHead returns an error for a log that ends before its known position.
func (h *host) checkHead(known uint64) error {
	head, err := h.env.bus.Head(h.ctx, h.space)
	for err != nil && h.core != nil && h.asksAgain("read the head of the log", err) {
		head, err = h.env.bus.Head(h.ctx, h.space)
	}
	if err != nil {
		return fmt.Errorf("read the head: %w", err)
	}
	if head < known {
		return &model.LossError{Kind: model.LossOfLog, Partition: model.PartitionOf(h.space, h.env.bus.Partitions()), Space: h.space, Known: known, Found: head}
	}
	return nil
}

// load reads the space from its checkpoint and the log behind it.
func (h *host) load() (st model.SpaceState, r *replica.Replica, err error) {
	err = lookup.OverGaps(h.ctx, h.space, func() error {
		if st, err = h.env.bus.LoadState(h.ctx, h.space); err != nil {
			return fmt.Errorf("load checkpoint: %w", err)
		}
		if r, err = replica.Load(h.space, st); err != nil {
			return err
		}
		h.saver.remember(st, r.LaneDone())
		return lookup.Replay(h.ctx, h.env.bus, r)
	})
	wasLost := h.env.home != nil && h.env.home.isRefused(h.space) // otherwise the takeover is refused if the log has lost its end
	if known := st.Newest(); err == nil && (known > r.Seq || wasLost) {
		err = h.checkHead(known) // a log that has lost its end would assign the sequence again
	}
	if err == nil {
		err = h.mend(r)
	}
	if err == nil && wasLost && h.env.home.accepted(h.space) {
		err = model.ErrStopped // the partition begins anew
	}
	return st, r, err
}

// catchUp integrates the commits of other runtimes since the head that a refused
// append expected. There is at least one such commit, so a reader that finds none
// is behind, and reads again.
func (h *host) catchUp() error {
	integrated, dry := 0, 0
	for h.ctx.Err() == nil {
		_ = pause.For(h.ctx, pause.Backoff(dry))
		entries, err := h.env.bus.ReadLog(h.ctx, h.space, h.core.Seq(), readPage)
		if err != nil && h.asksAgain("read the log", err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read log after %d: %w", h.core.Seq(), err)
		}
		if err := h.core.Integrate(entries...); err != nil {
			return err
		}
		if integrated += len(entries); integrated > 0 && len(entries) < readPage {
			break
		}
		if dry++; len(entries) > 0 {
			dry = 0
		}
		if dry > dryReads {
			if err := h.checkHead(h.core.Seq()); err != nil {
				return err
			}
		}
	}
	h.core.Resume()
	if !h.core.Owned() && !h.core.Deposed() && !h.draining {
		h.enter() // the refused commit was the takeover or the join
	}
	return h.ctx.Err()
}

// asksAgain reports whether a failed read of the store is to be repeated after
// a pause. A worker reloads a space whose host has ended for that reason; an attached
// host has no worker that would reload it.
func (h *host) asksAgain(what string, err error) bool {
	if !h.start.joins || h.ctx.Err() != nil || errors.Is(err, model.ErrStopped) {
		return false
	}
	h.report(what, err)
	_ = pause.For(h.ctx, askPause)
	return true
}

// eventOf returns the event that a lane message carries. It depends only on the message
// and the deployment's horizon, so every owner gets the same result.
func eventOf(m *model.Message, horizon time.Duration) model.Event {
	ev := model.Event{
		Space: m.Space, Stream: m.Stream, ID: m.ID,
		Lane: m.Seq, Position: m.Position, Term: m.Term, PrevTerm: m.PrevTerm, ReplayKey: m.ReplayKey, Depth: m.Depth, NotBefore: m.NotBefore, Expires: m.Expires, Trace: m.Trace,
	}
	if _, minted := model.OriginOf(m.ID); minted != (m.Position > 0) {
		ev.Invalid = "the event id and the position header do not belong together"
		ev.Position, ev.Term, ev.PrevTerm, ev.ReplayKey = 0, 0, 0, 0 // otherwise it would wait for a predecessor that will not arrive
		return ev
	}
	if m.Invalid != "" {
		ev.Invalid = m.Invalid // a tombstone, which only occupies its position
		return ev
	}
	if m.NotBefore < 0 {
		ev.Invalid = "what it says of the time before which it is not to be handled is no time; use milliseconds since 1970"
		return ev
	}
	if m.Expires < 0 {
		ev.Invalid = "what it says of the time after which it is not to be handled is no time; use milliseconds since 1970"
		return ev
	}
	if err := model.CheckEventAge(m.ID, m.Stored, horizon); err != nil {
		ev.Invalid = err.Error()
		return ev
	}
	if len(m.Payload) == 0 {
		return ev
	}
	var err error
	if ev.Payload, err = model.ParseValue(m.Payload); err != nil {
		ev.Invalid = "the payload is not JSON: " + err.Error()
	}
	return ev
}
