package sim

import (
	"github.com/settlehq/settle/runs"
	"github.com/settlehq/settle/workflow"
)

// boundsOf returns the bounds of the runs of a plan: most are so small that calls wait.
func (p *plan) boundsOf() runs.Bounds {
	usual := runs.Bounds{Tasks: 10_000, TaskBytes: 8 << 20, SpaceBytes: 32 << 20, Starts: 256, StartBytes: 128 << 10}
	c := keyed(p.seed, "bounds")
	if c.below(3) == 0 {
		return usual
	}
	return runs.Bounds{
		Tasks: oneOf(c, 1, 2, 5, usual.Tasks), TaskBytes: oneOf(c, 1, 400, 40_000, usual.TaskBytes), SpaceBytes: oneOf(c, 1, 400, 40_000, usual.SpaceBytes),
		Starts: oneOf(c, 1, 2, usual.Starts), StartBytes: oneOf(c, 1, 300, usual.StartBytes),
	}
}

// sizeOf is what a call counts for.
func sizeOf(w *workflow.Work) int { return len(w.Args) + len(w.Named) + len(w.ID) + 100 }

// startsMore reports whether calls wait after a step only because it has begun as many as a step may.
func (k *clerk) startsMore(fl *flow, out *effects) bool {
	if len(fl.queue) == 0 || len(out.started) == 0 {
		return false
	}
	bytes := sizeOf(&fl.queue[0])
	for i := range out.started {
		bytes += sizeOf(&out.started[i])
	}
	b := k.bounds
	ofRun, ofSpace := k.room(fl, k.pendingBytes())
	return ofRun && ofSpace && (len(out.started) >= b.Starts || bytes > b.StartBytes)
}

// pendingBytes are the bytes of the calls that are pending, by action.
func (k *clerk) pendingBytes() map[string]int {
	bytes := map[string]int{}
	for _, fl := range k.flows { // any order: sums
		for _, w := range fl.pending { // any order: sums
			bytes[w.Action] += sizeOf(&w)
		}
	}
	return bytes
}

// room reports whether a run and its space have room for the first call of the run that waits.
func (k *clerk) room(fl *flow, bytes map[string]int) (ofRun, ofSpace bool) {
	next, own := &fl.queue[0], 0
	for _, w := range fl.pending { // any order: a sum
		own += sizeOf(&w)
	}
	n, size := len(fl.pending), sizeOf(next)
	ofRun = n < k.bounds.Tasks && (n == 0 || own+size <= k.bounds.TaskBytes)
	ofSpace = next.Child != "" || bytes[next.Action] == 0 || bytes[next.Action]+size <= k.bounds.SpaceBytes
	return ofRun, ofSpace
}

// wake takes the steps of runs that had waited for room, which they get in the transactions of others.
func (k *clerk) wake() {
	for id, list := range k.records { // any order: each on its own
		fl := k.flows[id]
		for range list {
			if fl == nil || fl.state != runs.Running || len(fl.queue) == 0 {
				break // they are too many
			}
			k.f.w.count("runs that were given room by others")
			k.step(fl, made{room: true})
		}
	}
}

// checkRoom: a call waits if and only if there is no room for it.
func (k *clerk) checkRoom() {
	bytes, pending := k.pendingBytes(), map[string]int{}
	for _, fl := range k.flows { // any order: sums
		for _, w := range fl.pending { // any order: sums
			pending[w.Action]++
		}
	}
	load := k.f.docs[runsLoad]
	for _, action := range deeds {
		if counted, _ := load.Get("bytes").Get(action).AsInt(); counted != int64(bytes[action]) {
			k.f.wrong("room", "tasks of %s that are pending have %d bytes; load %s", action, bytes[action], load)
		}
		if pending[action] > 1 && bytes[action] > k.bounds.SpaceBytes {
			k.f.wrong("room", "%d tasks of %s with %d bytes are pending", pending[action], action, bytes[action])
		}
	}
	for _, fl := range k.flows { // any order: each on its own
		k.checkRoomOf(fl, bytes, !load.Get("waiting").Get(fl.id).IsAbsent())
	}
}

// mostWoken is how many runs that wait are woken when a call ends. The others have their turn when the calls of those end.
const mostWoken = 4

// checkRoomOf checks a run. Others are decided about once a call of theirs has ended. bytes are those of the calls that are pending, by action.
func (k *clerk) checkRoomOf(fl *flow, bytes map[string]int, waits bool) {
	own, b := 0, k.bounds
	for _, w := range fl.pending { // any order: a sum
		own += sizeOf(&w)
	}
	stuck := len(fl.queue) > 0 && len(fl.pending) == 0 && fl.more == 0
	if stuck && !waits || waits && len(fl.queue) == 0 {
		k.f.wrong("room", "%s, and %d calls that wait; it is listed as one that waits for others: %v", fl.describe(), len(fl.queue), waits)
	}
	if n := len(fl.pending); n > b.Tasks || n > 1 && own > b.TaskBytes {
		k.f.wrong("room", "%s: %d calls with %d bytes are pending", fl.describe(), n, own)
	}
	if len(fl.queue) == 0 {
		return
	}
	ofRun, ofSpace := k.room(fl, bytes)
	decided := stuck || k.touched[fl.id] == fl && fl.more == 0
	fl.passedOver = stuck && (fl.passedOver || k.waited > mostWoken) && len(bytes) > 0
	if decided && ofRun && ofSpace && !fl.passedOver {
		k.f.wrong("room", "%s: %s waits, and there is room: %d bytes are pending, of the space %v", fl.describe(), fl.queue[0].ID, own, bytes)
	}
	if !fl.waited {
		fl.waited = true
		k.f.w.count("runs that waited for room")
		if ofRun {
			k.f.w.count("runs that waited for room in their space")
		}
	}
}
