package ordered

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
)

// host serves one key: a loop that passes events to its core and carries out what that asks
// for. It ends when its partition does, or when the key has been idle.
type host struct {
	p       *partition
	key     string
	wake    chan struct{}
	answers chan answer
	saves   chan error

	mu    sync.Mutex
	inbox []model.Message
	bytes int
	left  uint64 // the highest lane sequence that found no room in the inbox
	last  uint64 // the highest lane sequence that was delivered
	// behind, if not 0, is the lane sequence up to which events were delivered before this host was there to
	// take them: they must be read again.
	behind uint64

	// low is the lane sequence up to which nothing of the key is left to do or to save, or
	// allDone. It is written with mu.
	low atomic.Uint64

	// clean says that there was nothing left to save when the partition was given up. at is what the key
	// is at, waiting how many of its events were read and are not handled; they are written with mu.
	clean   atomic.Bool
	at      standing
	waiting int

	code running
	// overran is what an earlier host of the key was given up for, nil for nothing.
	overran *overrun

	// What follows belongs to the loop.
	core     *core
	under    *model.Commit // that is being appended, nil for none
	nonce    string        // tells this host's appends from those of any other
	saver    saver
	dry      int // readings of the lane in a row that brought nothing
	refillAt time.Time
	// offered is the highest lane sequence that was passed to a ledger, of this life or an
	// earlier one.
	offered uint64
	// lost counts the times in a row that the key was taken away before anything was
	// confirmed, the last time at away.
	lost int
	away time.Time
	busy time.Time // when something has happened last
	// refused says that the log was found to end before what is known of it.
	refused bool
}

// answer is what the log says to an append.
type answer struct {
	seq uint64
	err error
}

const allDone = math.MaxUint64

func newHost(p *partition, key string, doneBefore uint64) *host {
	h := &host{
		p: p, key: key, nonce: rand.Text(),
		wake: make(chan struct{}, 1), answers: make(chan answer, 1), saves: make(chan error, 1),
	}
	h.low.Store(doneBefore)
	h.code.h = h
	return h
}

// offer puts an event into the inbox, or notes that it stays in the stream.
func (h *host) offer(m model.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.low.Store(min(h.low.Load(), m.Seq-1))
	h.last = max(h.last, m.Seq)
	if h.left > 0 || len(h.inbox) >= inboxEvents || h.bytes > inboxBytes {
		h.left = m.Seq
		return
	}
	h.inbox = append(h.inbox, m)
	h.bytes += len(m.Payload)
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// run serves the key, and begins anew when something fails that is not of the key's making.
func (h *host) run() {
	for try := 0; h.p.ctx.Err() == nil; try++ {
		err := h.live()
		h.awaitUnderway()
		if err == nil || errors.Is(err, model.ErrStopped) {
			return
		}
		if lost := model.LossOf(err); lost != nil {
			h.refused = true
			h.p.noteLoss(lost)
		} else if h.p.ctx.Err() == nil && !errors.Is(err, model.ErrRewound) { // of which the bus has told
			h.p.s.cfg.faults.Error("serve key", h.key, "key", h.key, "server", h.p.s.cfg.id, "error", err)
		}
		h.fails(err)
		_ = pause.For(h.p.ctx, pause.Backoff(try))
	}
}

// awaitUnderway waits for the answers that a life has not: those are not for the next one, and
// there is one append at a time.
func (h *host) awaitUnderway() {
	if h.under != nil {
		<-h.answers // it comes: the bus knows in the end, or is stopped
		h.under = nil
	}
	if h.saver.saving {
		<-h.saves //nolint:errcheck // the life that asked for it is over
		h.saver.saving = false
	}
}

// live is a life of the key in memory: from the checkpoint on to the end. It returns nil if
// the key is to leave.
func (h *host) live() error {
	if err := h.load(); err != nil {
		return err
	}
	for {
		if h.p.draining() && !h.core.Finishing() {
			h.core.Hold()
		}
		h.takeIn()
		h.refill()
		h.recall()
		more := h.core.work(batch, h.now(), time.Now())
		if h.p.ctx.Err() != nil {
			return model.ErrStopped // it was cut off in a handler, of which nothing is kept
		}
		h.append()
		h.publish()
		if left, err := h.leave(); left || err != nil {
			return err
		}
		if err := h.listen(more); err != nil {
			return err
		}
	}
}

// batch is how many events are handled before the answers of the log are looked at.
const batch = 64

func (h *host) now() time.Duration { return time.Since(h.p.began) }

// append sends the next commit, if there is one. The answer comes to listen.
func (h *host) append() {
	if h.core.asks() && h.takesOver() {
		h.core.TermAt(h.p.clock.Millis())
		h.core.TakeOver()
	}
	a := h.core.Append()
	if a == nil {
		return
	}
	h.under = a.Commit
	h.p.bus.Append(model.Append{
		Space: h.key, ID: a.Commit.ID() + "/" + h.nonce, Expect: a.Expect, Data: a.Data,
	}, func(seq uint64, err error) { h.answers <- answer{seq, err} }) // there is one at a time
}

// takesOver reports whether the key is to be taken over now: there is something to do or to
// save in it, and another has not just taken it.
func (h *host) takesOver() bool {
	due := h.core.Replica().Later.Next()
	work := !h.core.Lane().Done() || h.core.Replica().Seq > h.saver.seq || due != 0 && due <= time.Now().UnixMilli()
	return work && !h.p.draining() && h.lostWait() <= 0
}

// listen waits for something to happen, unless there is more to do.
func (h *host) listen(more bool) error {
	var timer <-chan time.Time
	var ready <-chan struct{}
	if more {
		ready = always
	} else {
		if h.under == nil {
			h.core.ReleaseMemory()
		}
		t := time.NewTimer(h.wakeAt())
		defer t.Stop()
		timer = t.C
	}
	select {
	case a := <-h.answers:
		return h.answered(a)
	case err := <-h.saves:
		return h.saved(err)
	case <-h.wake:
	case <-h.p.leaving:
		if !h.core.Settled() || h.saver.saving {
			return h.listenToTheEnd()
		}
	case <-timer:
	case <-ready:
	case <-h.p.ctx.Done():
		return model.ErrStopped
	}
	return nil
}

// always is closed: what waits for it need not.
var always = func() <-chan struct{} { c := make(chan struct{}); close(c); return c }()

// listenToTheEnd waits for what is under way when the partition is given up.
func (h *host) listenToTheEnd() error {
	if h.under == nil && !h.saver.saving {
		return nil // what is open is appended next
	}
	select {
	case a := <-h.answers:
		return h.answered(a)
	case err := <-h.saves:
		return h.saved(err)
	case <-h.p.ctx.Done():
		return model.ErrStopped
	}
}

// lookAgain bounds for how long a key sleeps that wants nothing.
const lookAgain = 10 * time.Second

// wakeAt is how long to wait at most.
func (h *host) wakeAt() time.Duration {
	wait := min(lookAgain, h.p.idle()-time.Since(h.busy))
	sooner := func(d time.Duration, when bool) {
		if when {
			wait = min(wait, d)
		}
	}
	if wait <= 0 {
		wait = lookAgain
	}
	c := h.core
	sooner(c.NotBefore()-h.now(), c.NotBefore() > h.now())
	due := c.Due()
	if !c.owned() {
		due = c.Replica().Later.Next()
	}
	sooner(time.Until(time.UnixMilli(due)), due > time.Now().UnixMilli())
	sooner(h.lostWait(), !c.owned() && h.lostWait() > 0)
	sooner(time.Until(h.saver.due), c.owned() && c.Replica().Seq > h.saver.seq && !h.saver.saving)
	_, refill := c.Lane().Refill()
	sooner(time.Until(h.refillAt), refill)
	return max(wait, time.Millisecond)
}

// lostWait is for how long the key is left to the server that has taken it away: longer each
// time in a row, as long as the two do not agree who is to have it.
func (h *host) lostWait() time.Duration {
	if h.lost == 0 {
		return 0
	}
	return time.Until(h.away.Add(h.p.s.cfg.Heartbeat << min(h.lost-1, 6)))
}

// answered takes in what the log said.
func (h *host) answered(a answer) error {
	h.busy = time.Now()
	c := h.under
	h.under = nil
	switch {
	case a.err == nil:
		h.p.s.counts.commits.Add(1)
		h.p.s.counts.receipts.Add(uint64(len(c.Txs))) // one each
		if len(c.Txs) > 0 {
			h.lost = 0
		}
		h.core.recorded(c)
		_, err := h.core.Confirm(a.seq)
		return err
	case errors.Is(a.err, model.ErrRefused):
		h.p.s.counts.refused.Add(1)
		was := h.core.owned()
		h.core.Refuse()
		if err := h.catchUp(); err != nil {
			return err
		}
		if was && !h.core.owned() {
			h.lost, h.away = h.lost+1, time.Now()
		}
		return nil
	}
	return fmt.Errorf("append a commit: %w", a.err)
}

// catchUp integrates what others have appended. There is at least one such commit, so a
// reader that sees none is behind, and asks again.
func (h *host) catchUp() error {
	for n, dry := 0, 0; ; dry++ {
		if err := pause.For(h.p.ctx, pause.Backoff(dry)); err != nil {
			return model.ErrStopped
		}
		entries, err := h.p.bus.ReadLog(h.p.ctx, h.key, h.core.Replica().Seq, readPage)
		if err != nil {
			return fmt.Errorf("read the log: %w", err)
		}
		if err := h.core.Integrate(entries...); err != nil {
			return err
		}
		if n += len(entries); n > 0 && len(entries) < readPage {
			h.core.Resume()
			return nil
		}
		if dry > dryReads {
			if err := h.checkHead(h.core.Replica().Seq); err != nil {
				return err
			}
		}
	}
}

// dryReads is after how many readings that bring nothing it is asked whether the log still
// reaches as far as is known.
const dryReads = 5

func (h *host) checkHead(known uint64) error {
	head, err := h.p.bus.Head(h.p.ctx, h.key)
	if err != nil {
		return fmt.Errorf("read the head of the log: %w", err)
	}
	if head < known {
		return &model.LossError{Kind: model.LossOfLog, Partition: h.p.number, Space: h.key, Known: known, Found: head}
	}
	return nil
}

// load brings the key to memory: its checkpoint, then the log behind it.
func (h *host) load() error {
	release, err := h.p.s.loading(h.p.ctx)
	if err != nil {
		return model.ErrStopped
	}
	defer release()
	st, err := h.p.bus.LoadState(h.p.ctx, h.key)
	if err != nil {
		return fmt.Errorf("load the checkpoint: %w", err)
	}
	rep, err := replica.Load(h.key, st)
	if err != nil {
		return err
	}
	h.saver = newSaver(st, rep)
	if err := history.Replay(h.p.ctx, h.p.bus, rep); err != nil {
		return err
	}
	if err := h.checkEnd(&st, rep.Seq); err != nil {
		return err
	}
	if err := h.mend(rep); err != nil {
		return err
	}
	h.p.lossOver(h.key)
	behind, err := h.findBehind(rep)
	if err != nil {
		return err
	}
	h.core = newCore(&h.p.s.cfg, rep, &h.code, h.overran)
	h.busy = time.Now()
	h.core.Lane().LeftInStream(max(behind, h.offered)) // an earlier life may not have been done with it
	return nil
}

// leave ends the host if the key has been idle, or its partition is given up and all is saved.
func (h *host) leave() (bool, error) {
	c := h.core
	if h.p.draining() {
		if !c.Settled() && c.owned() || h.under != nil || h.saver.saving {
			return false, nil
		}
		err := h.saveNow()
		h.publish()
		h.clean.Store(err == nil)
		return true, err
	}
	h.saveIfDue()
	if !c.Settled() || !c.Lane().Done() || c.Replica().Seq > h.saver.seq || h.saver.saving || time.Since(h.busy) < h.p.idle() {
		return false, nil
	}
	return h.p.dismiss(h), nil
}

// publish says how far the key is done with its lane. What is handled and not saved is not
// done: who comes next is to find the event, and to load the key for it.
func (h *host) publish() {
	c := h.core
	at := h.standsAt()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at, h.waiting = at, c.Lane().Waiting()
	switch {
	case len(h.inbox) > 0 || h.left > 0:
	case c.Settled() && c.Lane().Done() && c.Replica().Seq <= h.saver.seq:
		h.low.Store(allDone)
	default:
		h.low.Store(max(h.low.Load(), h.saver.lane))
	}
}
