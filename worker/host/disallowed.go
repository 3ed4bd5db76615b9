package host

import (
	"slices"
	"sync"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/status"
)

// disallowedLog has the last events that no rule allows. Those whose space does not exist end without a receipt, as that would create the
// space, so this is the only place that has them.
type disallowedLog struct {
	mu    sync.Mutex
	count uint64
	// newest are the last of them, one for each principal, space and stream.
	newest []disallowed
}

// disallowed is an entry, with the sequence in the lane of its last event.
type disallowed struct {
	status.Disallowed
	seq uint64
}

// maxDisallowed is how many of them are kept.
const maxDisallowed = 20

// note records an event, and reports whether it is new.
func (l *disallowedLog) note(m *model.Message, reason string, now time.Time) bool {
	return l.add(&disallowed{status.Disallowed{
		Principal: m.By(), Space: m.Space, Stream: m.Stream, Count: 1, Event: m.ID, Reason: reason, At: now.UTC(),
	}, m.Seq})
}

// add adds an entry to the one about the same principal, space and stream. It reports false for one that is known: hosts of a space that does
// not exist come and go, and may each find its events in the lane.
func (l *disallowedLog) add(d *disallowed) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := *d
	at := slices.IndexFunc(l.newest, func(e disallowed) bool {
		return e.Principal == d.Principal && e.Space == d.Space && e.Stream == d.Stream
	})
	switch {
	case at >= 0 && d.seq <= l.newest[at].seq:
		return false
	case at >= 0:
		sum.Count += l.newest[at].Count
		l.newest = slices.Delete(l.newest, at, at+1)
	case len(l.newest) == maxDisallowed:
		l.newest = slices.Delete(l.newest, 0, 1)
	}
	l.newest = append(l.newest, sum)
	l.count += d.Count
	return true
}

// read returns the last of them, the newest first, and the number of all.
func (l *disallowedLog) read() (newest []status.Disallowed, count uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range slices.Backward(l.newest) {
		newest = append(newest, l.newest[i].Disallowed)
	}
	return newest, l.count
}

// NoteDenied records an event that the gateway of this process has refused, and which is not stored, because its sender may not send it.
func (w *Worker) NoteDenied(principal, space, stream, reason string) {
	w.counters.byRule.Add(1)
	w.counters.unstored.add(&disallowed{status.Disallowed{
		Principal: principal, Space: space, Stream: stream, Count: 1, Reason: reason, At: w.cfg.Now().UTC(),
	}, w.counters.unstoredSeq.Add(1)})
}

// denials returns the last events that no rule allows and that were refused, in the lane or by the gateway, the newest first, and the number of all.
func (c *counters) denials() (newest []status.Disallowed, count uint64) {
	stored, n := c.denied.read()
	unstored, m := c.unstored.read()
	newest = append(stored, unstored...)
	slices.SortStableFunc(newest, func(a, b status.Disallowed) int { return b.At.Compare(a.At) })
	return newest, n + m
}

// passOver records and logs an event that no rule allows and whose space does not exist.
func (p *servedPartition) passOver(m *model.Message) {
	if err := p.cfg.refusal(m); err != nil { // it may be allowed since
		l := &disallowedLog{}
		l.note(m, err.Error(), p.cfg.Now())
		p.passOverAll(l)
	}
}

// passOverAll is passOver of all events of a list.
func (p *servedPartition) passOverAll(l *disallowedLog) {
	for i := range l.newest {
		d := &l.newest[i]
		if !p.counters.disallowed.add(d) {
			continue
		}
		p.counters.byRule.Add(d.Count)
		p.cfg.faults.Warn("events are passed over: no rule allows them, and their space does not exist", d.Principal, "worker", p.cfg.ID, "principal", d.Principal,
			"space", d.Space, "stream", d.Stream, "event", d.Event, "reason", d.Reason)
	}
}
