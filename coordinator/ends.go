package coordinator

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/internal/truncation"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// laneEnds records how far lanes have reached, beyond the life of a coordinator. A lane that has lost its end
// (a power cut without fsync) has lost releases whose commits still exist, and the saved positions of the
// logs are after those. So the end of a lane is saved before any position that relies on it: in the state of
// the lane's partition and, since a partition may go back as a whole, beside the position in the state of the
// log's partition. Before anything is released in an epoch, lanes are compared with their saved ends.
//
// A lane that is missing, or whose state bucket is, cannot be compared. Nothing can be released into it, and
// the other lanes do not wait for it. Once it exists again, it is compared; if it has lost its end, all logs
// are released again.
type laneEnds struct {
	c *Coordinator

	// flights makes tails with the same concurrent request share its result, even an error; it does not
	// matter which of them was first.
	flights singleflight.Group

	mu    sync.Mutex
	sure  bool // the lanes were compared in epoch, except missing ones
	epoch uint64
	lanes []laneEnd
	// missing are the partitions whose lanes could not be compared.
	missing map[int]bool
	// renewal counts how often all logs had to be released again, and renewed is closed by the next time.
	renewal uint64
	renewed chan struct{}
	// saving is held for reading while a position is saved, which belongs to a renewal.
	saving sync.RWMutex
}

// laneEnd counts the events put into a lane, and how many of them the saved end covers.
type laneEnd struct {
	put, covered uint64
	// end was saved in epoch; 0 if none was since the lane was last compared.
	end   anchor
	epoch uint64
}

func newLaneEnds(c *Coordinator) *laneEnds {
	return &laneEnds{c: c, lanes: make([]laneEnd, c.bus.Partitions()), renewed: make(chan struct{})}
}

// hasPut records that an event is in a lane, and returns its number among those.
func (l *laneEnds) hasPut(partition int) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lanes[partition].put++
	return l.lanes[partition].put
}

// save ensures that the saved end of a lane covers the events put there up to a number, and returns that end,
// or 0 if nothing was put there in this epoch.
func (l *laneEnds) save(bus port.Bus, partition int, upTo uint64) (anchor, error) {
	if l.isMissing(partition) { // its saved end decides whether it has lost something
		return 0, fmt.Errorf("lane %d has not been compared yet with its saved end: %w", partition, model.ErrNoStream)
	}
	for l.lane(partition).covered < upTo {
		_, err, _ := l.flights.Do(fmt.Sprint("save ", bus.Epoch(), partition), func() (any, error) {
			return nil, l.saveEnd(bus, partition)
		})
		if err != nil {
			return 0, err
		}
	}
	if lane := l.lane(partition); lane.epoch == bus.Epoch() {
		return lane.end, nil
	}
	return 0, nil
}

func (l *laneEnds) lane(partition int) laneEnd {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lanes[partition]
}

func (l *laneEnds) saveEnd(bus port.Bus, partition int) error {
	put := l.lane(partition).put
	end, err := endOf(l.c.ctx, bus, partition)
	if err == nil {
		err = bus.SavePosition(l.c.ctx, partition, port.PositionSent, uint64(end))
	}
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	lane := &l.lanes[partition]
	lane.covered, lane.end, lane.epoch = max(lane.covered, put), end, bus.Epoch()
	return nil
}

// compare compares all lanes with their saved ends, once per epoch; missing ones are compared later. If a
// lane has lost its end, all logs are released again as far back as lanes remember events; targets recognize
// repetitions.
func (l *laneEnds) compare(bus port.Bus) error {
	if l.isSure(bus.Epoch()) {
		return nil
	}
	_, err, _ := l.flights.Do(fmt.Sprint("compare ", bus.Epoch()), func() (any, error) { return nil, l.compareAll(bus) })
	return err
}

func (l *laneEnds) isSure(epoch uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sure && l.epoch == epoch
}

func (l *laneEnds) compareAll(bus port.Bus) error {
	if l.isSure(bus.Epoch()) {
		return nil // done since the call
	}
	var lost []int
	missing := map[int]bool{}
	for p := range bus.Partitions() {
		has, err := l.hasLost(bus, p)
		if errors.Is(err, model.ErrNoStream) {
			missing[p] = true
			l.c.cfg.Logger.Error("a lane cannot be compared with its saved end, as a stream is missing: sends to it wait, other lanes do not", "partition", p, "error", err)
			continue
		}
		if err != nil {
			return err
		}
		if has {
			lost = append(lost, p)
		}
	}
	if len(lost) > 0 {
		if err := l.releaseLogsAgain(bus, lost); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sure, l.epoch, l.missing = true, bus.Epoch(), missing
	return nil
}

func (l *laneEnds) isMissing(partition int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.missing[partition]
}

// await compares missing lanes as soon as they exist again, until the coordinator stops.
func (l *laneEnds) await() {
	look := time.NewTicker(l.c.cfg.Save)
	defer look.Stop()
	for {
		select {
		case <-l.c.ctx.Done():
			return
		case <-look.C:
		}
		for p := range l.lanes {
			if bus := port.Session(l.c.bus); l.isMissing(p) && l.isSure(bus.Epoch()) { // else it is about to be compared
				l.lookAgain(bus, p)
			}
		}
	}
}

// lookAgain compares a lane that was missing. If it has lost its end, all logs start again, by comparing all
// lanes.
func (l *laneEnds) lookAgain(bus port.Bus, partition int) {
	has, err := l.hasLost(bus, partition)
	switch {
	case err != nil: // still missing, or not reachable now
		return
	case has:
		l.renew()
		return
	}
	l.c.cfg.Logger.Warn("a lane that was missing exists again, and has lost nothing", "partition", partition)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.missing, partition)
}

// renew makes all tails start again. After it returns, positions of earlier renewals are no longer saved.
func (l *laneEnds) renew() {
	l.saving.Lock()
	defer l.saving.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sure = false
	l.renewal++
	close(l.renewed)
	l.renewed = make(chan struct{})
}

// current returns the number of the current renewal, and a channel that is closed when it is superseded.
func (l *laneEnds) current() (renewal uint64, over <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.renewal, l.renewed
}

// within calls f, which saves a position, if the renewal in which the position was released is still current;
// otherwise it returns model.ErrRewound.
func (l *laneEnds) within(renewal uint64, f func() error) error {
	l.saving.RLock()
	defer l.saving.RUnlock()
	if now, _ := l.current(); now != renewal {
		return model.ErrRewound
	}
	return f()
}

// savedEnd is one place at which the end of a lane is saved: the state of a partition.
type savedEnd struct {
	at   int
	name string
	end  anchor
}

// savedEnds returns the saved ends of a lane.
func (l *laneEnds) savedEnds(bus port.Bus, partition int) (list []savedEnd, err error) {
	for at := range bus.Partitions() {
		name := sentTo(partition, at)
		position, err := bus.LoadPosition(l.c.ctx, at, name)
		switch {
		case errors.Is(err, model.ErrNoStream) && at != partition: // nothing is released from that log either
		case err != nil:
			return nil, err
		case position > 0:
			list = append(list, savedEnd{at, name, anchor(position)})
		}
	}
	return list, nil
}

// sentTo returns the name under which the end of a lane is saved in the state of a partition.
func sentTo(lane, at int) string {
	if lane == at {
		return port.PositionSent
	}
	return fmt.Sprintf("%s-%d", port.PositionSent, lane)
}

// hasLost reports whether a lane ends before a saved end, or has assigned that sequence again since.
func (l *laneEnds) hasLost(bus port.Bus, partition int) (bool, error) {
	list, err := l.savedEnds(bus, partition)
	if err != nil || len(list) == 0 {
		return false, err
	}
	var ends []anchor
	for _, s := range list {
		ends = append(ends, s.end)
	}
	slices.Sort(ends)
	ends = slices.Compact(ends)
	for began := time.Now(); ; {
		end, err := bus.LaneEnd(l.c.ctx, partition)
		if err != nil {
			return false, err
		}
		if end >= ends[len(ends)-1].seq() {
			break
		}
		if time.Since(began) >= bus.StaleWindow() { // before that it may be a lagging leader
			return true, nil
		}
		if err := pause.For(l.c.ctx, minPause); err != nil {
			return false, err
		}
	}
	for _, saved := range ends {
		if m, there, err := bus.LaneEvent(l.c.ctx, partition, saved.seq()); err != nil || there && anchorOf(&m) != saved {
			return err == nil, err
		}
	}
	return false, nil
}

// anchor identifies an event at a place in a lane: its sequence and, in the low bits, a part of the hash of
// the event's name. Anchors are ordered by sequence.
type anchor uint64

// nameBits leaves room for sequences up to 2^44.
const nameBits = 20

func (a anchor) seq() uint64 { return uint64(a) >> nameBits }

func anchorOf(m *model.Message) anchor {
	h := fnv.New64a()
	for _, part := range []string{m.Space, m.Stream, m.ID} {
		_, _ = h.Write(append([]byte(part), 0)) // cannot fail
	}
	return anchor(m.Seq<<nameBits | h.Sum64()>>(64-nameBits))
}

// endOf returns the end of a lane.
func endOf(ctx context.Context, bus port.Bus, partition int) (anchor, error) {
	end, err := bus.LaneEnd(ctx, partition)
	if err != nil {
		return 0, err
	}
	m, there, err := bus.LaneEvent(ctx, partition, end)
	switch {
	case err != nil:
		return 0, err
	case !there && end > 0:
		return 0, fmt.Errorf("lane %d is reported to end at %d, where there is no message", partition, end) // by a deposed leader: asked again
	case !there:
		return 0, nil
	}
	return anchorOf(&m), nil
}

// isLater reports whether a message was stored after the saved position that refers to it. Times of two
// servers can be compared only up to a margin.
func isLater(bus port.Bus, stored, saved time.Time) bool {
	if bus.StaleWindow() > 0 {
		saved = saved.Add(truncation.Margin)
	}
	return stored.After(saved)
}

// releaseLogsAgain moves the positions of all logs back, and then saves the ends of those lanes: an interrupted
// attempt is repeated.
func (l *laneEnds) releaseLogsAgain(bus port.Bus, lost []int) error {
	l.c.faults.Error("lanes have lost their ends (a power cut without fsync, or older files): the logs are released again", "", "lanes", lost)
	var known time.Time // when the lost events were put there, at the latest
	var saved []savedEnd
	for _, p := range lost {
		list, err := l.savedEnds(bus, p)
		if err != nil {
			return err
		}
		for _, s := range list {
			at, err := bus.PositionStored(l.c.ctx, s.at, s.name)
			if err != nil {
				return err
			}
			if known.IsZero() || at.Before(known) {
				known = at
			}
		}
		saved = append(saved, list...)
	}
	for p := range bus.Partitions() {
		if _, _, err := moveBack(l.c.ctx, bus, p, known); err != nil {
			return err
		}
	}
	now := map[string]anchor{} // by name: those of two lanes differ
	for _, p := range lost {
		end, err := endOf(l.c.ctx, bus, p)
		if err != nil {
			return err
		}
		l.mu.Lock()
		l.lanes[p].end = 0
		l.mu.Unlock()
		now[sentTo(p, -1)] = end
		if err := bus.MovePosition(l.c.ctx, p, port.PositionSent, uint64(end)); err != nil {
			return err
		}
	}
	for _, s := range saved {
		if s.name == port.PositionSent {
			continue
		}
		if err := bus.MovePosition(l.c.ctx, s.at, s.name, uint64(now[s.name])); err != nil {
			return err
		}
	}
	return nil
}

// moveBack moves the saved position of a log back to where lanes remembered events at a time, and returns it.
// It never moves it forward: later sends were not released yet, however old they are.
func moveBack(ctx context.Context, bus port.Bus, partition int, known time.Time) (uint64, model.LogState, error) {
	st, err := bus.LogState(ctx, partition, bus.Horizon())
	if err == nil {
		st, err = bus.LogState(ctx, partition, bus.Horizon()+max(st.Now.Sub(known), 0))
	}
	if err != nil {
		return 0, st, err
	}
	at, err := bus.LoadPosition(ctx, partition, Position)
	if err != nil || at <= st.Old {
		return at, st, err
	}
	return st.Old, st, bus.MovePosition(ctx, partition, Position, st.Old)
}

// put records that an event of this log is in its lane.
func (t *tail) put(m *model.Message) {
	p := model.PartitionOf(m.Space, len(t.sent))
	n := t.c.ends.hasPut(p)
	for {
		was := t.sent[p].Load()
		if n <= was || t.sent[p].CompareAndSwap(was, n) {
			return
		}
	}
}

// saveEnds saves the ends of the lanes into which this log was released. saved are the ends that were saved
// beside the position of the log in this epoch, by lane.
func (t *tail) saveEnds(bus port.Bus, saved map[int]anchor) error {
	for p := range t.sent {
		n := t.sent[p].Load()
		if n == 0 {
			continue
		}
		end, err := t.c.ends.save(bus, p, n)
		if err != nil {
			return err
		}
		if p == t.partition || end <= saved[p] {
			continue
		}
		if err := bus.SavePosition(t.c.ctx, t.partition, sentTo(p, t.partition), uint64(end)); err != nil {
			return err
		}
		saved[p] = end
	}
	return nil
}
