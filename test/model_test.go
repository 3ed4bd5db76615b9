package test

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// callHistory records the operations of clients and the answers, with the times of both. It is valid if
// there is an order of all operations, each between its call and its answer, in which the state machine
// below would give the same answers.
type callHistory struct {
	mu    sync.Mutex
	start time.Time
	ops   []porcupine.Operation
	track map[string]int // lanes of the drawing
}

func newHistory() *callHistory { return &callHistory{start: time.Now(), track: map[string]int{}} }

// asked is the input of an operation, answered its result.
type asked struct {
	kind  kind
	space string
	id    string // of the event
	// place is the position of the event among all events that its space handles, 0 if it is never
	// handled; see arrivals.
	place int
	// past is set if the answer may be out of date.
	past bool
}

type answered struct {
	// open is set if a send has had no answer. It may take effect at any time, or never.
	open      bool
	duplicate bool // of a send
	n         int  // of the others: a count, 0 for none
}

type kind string

const (
	sent    kind = "send"  // the event is in the lane; also for what handlers send
	awaited kind = "await" // its receipt says n
	found   kind = "find"  // the same, or that it has no receipt yet
	read    kind = "read"  // n events have been handled
	rested  kind = "rest"  // n events have been handled, and none is left
	// handling is an operation that no client requests: the event in its place is handled.
	handling kind = "handle"
)

// begin records the call of an operation. The function that it returns records the answer.
func (h *callHistory) begin(who string, in asked) func(answered) {
	call := time.Since(h.start)
	return func(out answered) {
		h.add(who, in, out, call, time.Since(h.start))
	}
}

func (h *callHistory) add(who string, in asked, out answered, call, answer time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.track[who]; !ok {
		h.track[who] = len(h.track)
	}
	if out.open {
		answer = math.MaxInt64
	}
	h.ops = append(h.ops, porcupine.Operation{
		ClientId: h.track[who], Input: in, Output: out, Call: int64(call), Return: int64(answer),
	})
}

// queue is the whole model of a space: the number of events that its lane has accepted, and how many of
// them are handled. The places define the order.
type queue struct{ taken, handled int }

// step reports whether a space in state q can give this answer, and returns the next state.
func (q queue) step(in asked, out answered) (bool, queue) {
	switch in.kind {
	case sent:
		return q.send(in, out)
	case handling:
		return in.place == q.handled+1 && in.place <= q.taken, queue{q.taken, in.place}
	case awaited:
		return out.n == in.place && out.n > 0 && out.n <= q.handled, q
	case found:
		if out.n > 0 {
			return out.n == in.place && out.n <= q.handled, q
		}
		return in.past || in.place == 0 || q.handled < in.place, q
	case read:
		return out.n == q.handled || in.past && out.n < q.handled, q
	case rested:
		return out.n == q.handled && out.n == q.taken, q
	}
	return false, q
}

// send puts an event into the lane, or finds it there. An event without a place is never handled, so no
// history with it is valid.
func (q queue) send(in asked, out answered) (bool, queue) {
	switch {
	case out.duplicate:
		return in.place <= q.taken, q
	case in.place == 0:
		return true, queue{q.taken + 1, q.handled}
	}
	return in.place == q.taken+1, queue{in.place, q.handled}
}

// lanesAndReceipts is the model, one machine per space.
var lanesAndReceipts = porcupine.Model{
	Partition: func(ops []porcupine.Operation) [][]porcupine.Operation {
		bySpace := map[string][]porcupine.Operation{}
		for _, op := range ops {
			space := op.Input.(asked).space
			bySpace[space] = append(bySpace[space], op)
		}
		var parts [][]porcupine.Operation
		for _, ops := range bySpace { // any order: each on its own
			parts = append(parts, ops)
		}
		return parts
	},
	Init: func() any { return queue{} },
	Step: func(state, in, out any) (bool, any) { return state.(queue).step(in.(asked), out.(answered)) },
	DescribeOperation: func(in, out any) string {
		i, o := in.(asked), out.(answered)
		if i.kind == sent {
			return fmt.Sprintf("send %s (place %d): duplicate %t", i.id, i.place, o.duplicate)
		}
		return fmt.Sprintf("%s %s: %d", i.kind, i.id, o.n)
	},
	DescribeState: func(state any) string { return fmt.Sprintf("%+v", state) },
}

// arrivals determines by which operation each event arrived, and in which place, so that the checker need not
// try. It excludes no order that could be accepted:
//
// The place is the one that the event's receipt names. The event arrived by the send with that answer. If there
// is none, it arrived by a send without an answer, or by one that was answered as a duplicate, between the
// first call and the first answer that shows that the event is there. That becomes an operation of its own, and
// a send without an answer is only the possibility of it.
func arrivals(ops []porcupine.Operation) []porcupine.Operation {
	events := map[string]*arrival{}
	var out []porcupine.Operation
	for _, op := range ops {
		in := op.Input.(asked)
		if events[in.event()] == nil {
			events[in.event()] = &arrival{op: porcupine.Operation{
				ClientId: op.ClientId, Input: in, Output: answered{}, Call: math.MaxInt64, Return: math.MaxInt64,
			}}
		}
		events[in.event()].note(in, op)
	}
	for _, op := range ops {
		in := op.Input.(asked)
		in.place = events[in.event()].place
		op.Input = in
		if !op.Output.(answered).open {
			out = append(out, op)
		}
	}
	for _, e := range events { // any order: the checker sorts them
		if e.unseen() {
			out = append(out, e.op)
		}
	}
	return out
}

// arrival is what is known of how an event came into its lane.
type arrival struct {
	op    porcupine.Operation // if no answer shows it: somewhere in the interval
	place int
	told  bool // an answer says: stored
	sure  bool // an answer shows the event
}

func (e *arrival) note(in asked, op porcupine.Operation) {
	out := op.Output.(answered)
	if in.kind != sent {
		if e.place == 0 {
			e.place = out.n
		}
		return
	}
	in.place = 0
	e.op.Input = in
	e.op.Call = min(e.op.Call, op.Call)
	if !out.open {
		e.op.Return = min(e.op.Return, op.Return)
		e.told = e.told || !out.duplicate
		e.sure = true
	}
}

// unseen reports whether the event has arrived, or must have arrived, without such an answer to any
// send.
func (e *arrival) unseen() bool {
	in := e.op.Input.(asked)
	in.place = e.place
	e.op.Input = in
	return in.kind == sent && !e.told && (e.sure || e.place > 0)
}

// handlings determines when each event was handled, as far as answers show: after the last call whose answer
// excludes it, and before the first answer that includes it.
func handlings(ops []porcupine.Operation) []porcupine.Operation {
	most := map[string]int{}
	for _, op := range ops {
		in := op.Input.(asked)
		if in.kind != sent {
			most[in.space] = max(most[in.space], op.Output.(answered).n)
		}
	}
	out := slices.Clone(ops)
	for space, n := range most { // any order: the checker sorts them
		call, answer := make([]int64, n+2), slices.Repeat([]int64{math.MaxInt64}, n+2)
		for _, op := range ops {
			if in := op.Input.(asked); in.space == space && in.kind != sent {
				witness(in, op, call, answer)
			}
		}
		for k := 1; k <= n; k++ {
			call[k] = max(call[k], call[k-1])
		}
		for k := n; k > 0; k-- {
			answer[k] = min(answer[k], answer[k+1])
			out = append(out, porcupine.Operation{
				ClientId: noOne, Input: asked{kind: handling, space: space, place: k}, Output: answered{},
				Call: call[k], Return: max(call[k], answer[k]),
			})
		}
	}
	return out
}

// noOne is the row of the drawing for operations without a client.
const noOne = 40

// witness narrows the time in which events were handled by the answer of an operation: not before call, unless
// they were included then, and not after answer.
func witness(in asked, op porcupine.Operation, call, answer []int64) {
	n := op.Output.(answered).n
	answer[n] = min(answer[n], op.Return)
	switch {
	case in.past:
	case in.kind == found && n == 0 && in.place > 0 && in.place < len(call):
		call[in.place] = max(call[in.place], op.Call)
	case in.kind == read || in.kind == rested:
		call[n+1] = max(call[n+1], op.Call)
	}
}

func (in asked) event() string { return in.space + " " + in.id }

// checkLimit is far more than any of the histories takes, right or wrong.
const checkLimit = patience

// check searches for an order, and draws the result.
func (h *callHistory) check() (porcupine.CheckResult, porcupine.LinearizationInfo) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return porcupine.CheckOperationsVerbose(lanesAndReceipts, handlings(arrivals(h.ops)), checkLimit)
}

// allowed reports whether there is such an order. A search that exceeds the limit counts as a failure.
func (h *callHistory) allowed() bool {
	result, _ := h.check()
	return result == porcupine.Ok
}

// wantAllowed fails the test for a history that is not allowed, and draws it.
func (h *callHistory) wantAllowed(t *testing.T) {
	t.Helper()
	result, info := h.check()
	if result == porcupine.Ok {
		return
	}
	path := filepath.Join(artifacts(t), strings.ReplaceAll(t.Name(), "/", "-")+".html")
	if err := porcupine.VisualizePath(lanesAndReceipts, info, path); err != nil {
		t.Error(err)
	}
	t.Errorf("of %d operations there is no order that lanes and receipts allow (%s); it is drawn in %s", len(h.ops), result, path)
}

// artifacts returns a directory that outlives the test.
func artifacts(t *testing.T) string {
	t.Helper()
	if f := flag.Lookup("test.artifacts"); f != nil && f.Value.String() == "true" {
		return t.ArtifactDir()
	}
	dir, err := os.MkdirTemp("", "settle-history-") //nolint:usetesting // somebody is to look at it
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
