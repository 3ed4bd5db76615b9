package sim

import (
	"github.com/settlehq/settle/runs"
	"github.com/settlehq/settle/workflow"
)

// How much is pending before a call waits for room: in a run, and in a space for an action. The program may let it wait once there
// would be more than the lower bounds, and must do so before there is more than the upper ones.
const (
	leastOfRun, mostOfRun     = 6 << 20, 8 << 20
	leastOfSpace, mostOfSpace = 28 << 20, 32 << 20
	// startsOfStep and bytesOfStep are what one step begins at most; calls beyond it are begun by another one.
	startsOfStep, bytesOfStep = 256, 128 << 10
)

// startsMore reports whether calls wait after a step only because it has begun as many as a step may.
func startsMore(fl *flow, out *effects) bool {
	if len(fl.queue) == 0 || len(out.started) == 0 {
		return false
	}
	size := func(w *workflow.Work) int { return argsOf(w) + len(w.ID) + 100 }
	bytes := size(&fl.queue[0])
	for i := range out.started {
		bytes += size(&out.started[i])
	}
	return len(out.started) >= startsOfStep || bytes > bytesOfStep
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

// checkRoom: a call waits only if much is pending, and then not too much is.
func (k *clerk) checkRoom() {
	bytes, pending := map[string]int{}, map[string]bool{}
	for _, fl := range k.flows { // any order: sums
		for _, w := range fl.pending { // any order: sums
			bytes[w.Action] += argsOf(&w)
			pending[w.Action] = true
		}
	}
	load := k.f.docs[runsLoad]
	for _, action := range deeds {
		if counted := !load.Get("bytes").Get(action).IsAbsent(); counted != pending[action] {
			k.f.wrong("room", "tasks of %s are pending: %v; load %s", action, pending[action], load)
		}
		if bytes[action] > mostOfSpace {
			k.f.wrong("room", "%d bytes of arguments of %s are pending", bytes[action], action)
		}
	}
	for _, fl := range k.flows { // any order: each on its own
		k.checkRoomOf(fl, bytes, !load.Get("waiting").Get(fl.id).IsAbsent())
	}
}

// checkRoomOf checks a run. Others are decided about once a call of theirs has ended. bytes are those of the arguments that are pending, by action.
func (k *clerk) checkRoomOf(fl *flow, bytes map[string]int, waits bool) {
	own := 0
	for _, w := range fl.pending { // any order: a sum
		own += argsOf(&w)
	}
	stuck := len(fl.queue) > 0 && len(fl.pending) == 0 && fl.more == 0
	if stuck && !waits || waits && len(fl.queue) == 0 {
		k.f.wrong("room", "%s, and %d calls that wait; it is listed as one that waits for others: %v", fl.describe(), len(fl.queue), waits)
	}
	if own > mostOfRun {
		k.f.wrong("room", "%s: %d bytes of arguments are pending", fl.describe(), own)
	}
	if len(fl.queue) == 0 {
		return
	}
	next := &fl.queue[0]
	if decided := stuck || k.touched[fl.id] == fl && fl.more == 0; decided && own+argsOf(next) < leastOfRun && bytes[next.Action]+argsOf(next) < leastOfSpace {
		k.f.wrong("room", "%s: %s waits, and there is room: %d bytes are pending, of the space %d", fl.describe(), next.ID, own, bytes[next.Action])
	}
	if !fl.waited {
		fl.waited = true
		k.f.w.count("runs that waited for room")
	}
}

func argsOf(w *workflow.Work) int { return len(w.Args) + len(w.Named) }
