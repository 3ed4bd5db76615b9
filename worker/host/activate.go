package host

import (
	"fmt"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
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
	if err = h.checkUnborn(r); err != nil {
		return err
	}
	if h.core, err = h.start.program.NewCore(h.access(), st, r); err != nil {
		return err
	}
	if g, is := h.core.(Graph); is {
		h.graph = h.newGraphParts(g)
		h.saver.observed = g
	}
	for _, o := range h.start.overruns {
		o.Until += h.now()
		h.core.Overran(o)
	}
	if h.start.behind == 0 {
		return nil // the partition's reader began before the first unhandled event
	}
	if err := h.findBehind(); err != nil {
		return err
	}
	// A lagging replica may answer reads of the lane. Before any later event is handled, the events that were
	// already delivered must be read.
	h.core.LeftInStream(h.start.behind)
	return h.readLane()
}

// access returns what the core may use of the host. The max_payload is the server's present one, which
// may have changed since the worker started.
func (h *host) access() *Access {
	return &Access{
		Space: h.space, Ctx: h.ctx, Joins: h.start.joins, Unborn: h.unborn.Load(), Limits: h.env.cfg.within(h.env.bus.MaxPayload()).Limits, Code: &h.code,
		Now: h.now, Go: h.env.tasks.Go, Call: h.call, Send: h.loop.send, Report: h.report, Warn: h.env.cfg.faults.Warn, Stored: h.gauge.storedAt,
	}
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
		if !h.core.Offer(h.eventOf(&events[i])) {
			return false
		}
		h.gauge.read(&events[i])
		h.traced.attribute(&events[i])
		h.inbox.readEvent(&events[i])
	}
	return true
}

// load reads the space from its checkpoint and the log after it.
func (h *host) load() (st model.SpaceState, r *replica.Replica, err error) {
	err = history.OverGaps(h.ctx, h.space, func() error {
		if st, err = h.env.bus.LoadState(h.ctx, h.space); err != nil {
			return fmt.Errorf("load checkpoint: %w", err)
		}
		if r, err = replica.Load(h.space, st); err != nil {
			return err
		}
		h.saver.remember(st, r.LaneDone())
		h.saver.stored.markers.raised(r.Floor(), st.Mark.Seq)
		return history.Replay(h.ctx, h.env.bus, r)
	})
	wasLost := h.env.home != nil && h.env.home.isRefused(h.space) // otherwise the takeover is refused if the log has lost its end
	if known := st.Newest(); err == nil && (known > r.Seq || wasLost) {
		err = h.checkHead(known) // a log that has lost its end would assign the sequence again
	}
	if err == nil {
		err = h.reclaimPassed(r)
	}
	if err == nil && wasLost && h.env.home.accepted(h.space) {
		err = model.ErrStopped // the partition restarts
	}
	return st, r, err
}

// reclaimPassed sets aside events that the cursor of a space has passed without a receipt, so that they are handled.
func (h *host) reclaimPassed(r *replica.Replica) error {
	if h.env.home == nil {
		return nil
	}
	d, err := h.env.home.comparison(h.ctx)
	if err != nil {
		return err
	}
	if d == nil || r.Cursor.Floor <= d.After {
		return nil
	}
	c, err := d.Reopen(h.ctx, h.env.bus, h.space, r.Cursor, r.Seq)
	if err != nil {
		return err
	}
	r.Cursor = c
	h.saver.lane = min(h.saver.lane, r.LaneDone())
	return nil
}

// findBehind makes sure that the event exists up to which the lane must be read before any later event is
// handled. The host would wait for a removed event forever, so in that case it waits for the last one before
// it. A store that may answer from the past is asked again for as long as it may.
func (h *host) findBehind() error {
	for began := time.Now(); h.start.behind > h.core.ReadLaneAfter(); {
		m, there, err := h.env.bus.LaneEvent(h.ctx, model.PartitionOf(h.space, h.env.bus.Partitions()), h.start.behind)
		switch {
		case err != nil:
			return fmt.Errorf("look at event %d of the lane: %w", h.start.behind, err)
		case there && m.Space == h.space:
			return nil
		case time.Since(began) >= h.env.bus.StaleWindow():
			return h.lastBehind()
		}
		if err := pause.For(h.ctx, h.env.cfg.Heartbeat); err != nil {
			return err
		}
	}
	return nil
}

func (h *host) lastBehind() error {
	last := h.core.ReadLaneAfter()
	for after := last; after < h.start.behind; {
		events, err := h.env.bus.ReadLane(h.ctx, h.space, after, readPage)
		if err != nil {
			return fmt.Errorf("read lane after %d: %w", after, err)
		}
		for i := range events {
			if after = events[i].Seq; after <= h.start.behind {
				last = after
			}
		}
		if len(events) < readPage {
			break
		}
	}
	h.env.cfg.Logger.Warn("an event is not in the lane any more that was not handled", "space", h.space, "sequence", h.start.behind, "last", last)
	h.start.behind = last
	return nil
}
