package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
)

// Rule is one of the promises that are checked.
type Rule string

// The rules. Lost, Duplicates and OutOfOrder are those whose counts a report leads with.
const (
	Lost       Rule = "lost"
	Duplicates Rule = "duplicates"
	OutOfOrder Rule = "out of order"
	Early      Rule = "before its time"
	Causality  Rule = "causality"
	Fencing    Rule = "fencing"
	Unsent     Rule = "handled and never sent"
	Effects    Rule = "effects of a handling"
	Answers    Rule = "answers to clients"
	Sums       Rule = "sums"
	Watches    Rule = "watches"
	Regression Rule = "watch regressions"
	Unwatched  Rule = "computed without an observer"
	Dead       Rule = "dead letters"
	State      Rule = "buckets differ from the log"
	Broken     Rule = "unreadable"
	Unsettled  Rule = "not settled in time"
	Crashed    Rule = "processes that crashed"
)

// Rules lists all rules, in the order of a report.
var Rules = []Rule{
	Lost, Duplicates, OutOfOrder, Early, Causality, Fencing, Unsent, Effects, Answers, Sums,
	Watches, Regression, Unwatched, Dead, State, Broken, Unsettled, Crashed,
}

// maxExamples is the number of violations of a rule that are described.
const maxExamples = 10

// Checker receives everything that a run has stored and recorded: Acked, Received and Watched in
// any order, then Lane for every lane message, then Log for every commit (each partition
// in its order), then Dead and State, then Finish.
type Checker struct {
	work       Workload
	partitions int
	spaces     map[string]*spaceHistory
	observers  map[int]*observer
	watched    map[docKey]bool
	newest     map[int]bool     // observers
	asked      map[docKey]bool  // watched before the state that is judged
	dead       map[deadKey]bool // letters that are due
	kills      []Kill
	byPart     []partHistory
	totals     totals

	// Losses are the data losses of the servers' disks, set before the first call.
	Losses []Loss
	// Skew is the largest error of the workers' clocks.
	Skew time.Duration

	// Counts are updated during the check.
	Counts Counts
	// Violations counts the violations of each rule, Examples describes some.
	Violations map[Rule]int
	Examples   map[Rule][]string
}

// Counts are the totals of a run.
type Counts struct {
	Commits, Takeovers, Conflicts int
	// Handled counts all receipts; FromClients, Crossed (from another space), Own, Notices and Jobs
	// (ends of tasks) count them by the origin of the event.
	Handled, FromClients, Crossed, Own, Notices, Jobs int
	// Waited counts delayed events, Superseded timers that were set again before they were due,
	// HostedEvents events handled by the program in Starlark.
	Waited, Superseded, HostedEvents int
	Failed, Refused                  int
	Acked, Repeated, Receipts        int
	Deliveries, Sessions             int
	Letters                          int
	// LostToPower counts events that were acknowledged during a Loss and are in no lane.
	LostToPower int
	// Retried counts events that took more than one attempt, Marked the attempts recorded in commits,
	// GivenUp events during whose handling three processes died.
	Retried, Marked, GivenUp int
	// Tombstones counts tombstones. Duplicates that the lane has refused are invisible.
	Tombstones int
	// First and Last are the times at which the first and the last commit were stored.
	First, Last time.Time
	// PerMinute counts receipts by the minute since First.
	PerMinute []int
	TakeOver  []Takeover
}

type docKey struct{ space, doc string }

type deadKey struct{ space, stream, id string }

// New returns the checker of a run.
func New(w Workload, partitions int) *Checker {
	c := &Checker{
		work: w, partitions: partitions,
		spaces: map[string]*spaceHistory{}, observers: map[int]*observer{}, newest: map[int]bool{}, asked: map[docKey]bool{}, watched: map[docKey]bool{}, dead: map[deadKey]bool{},
		byPart:     make([]partHistory, partitions),
		Violations: map[Rule]int{}, Examples: map[Rule][]string{},
	}
	for i := range w.Spaces {
		name := w.Space(i)
		c.spaces[name] = &spaceHistory{
			name: name, rep: replica.New(name), clients: map[int]*clientHistory{},
			seen: map[string]int64{}, own: map[string]followUp{}, done: map[string]bool{},
			timers: map[string]string{}, waits: map[string]int64{}, jobs: map[string]bool{}, ended: map[string]bool{}, reported: map[string]string{},
			notices: map[string]bool{}, out: map[string][]sentEvent{}, in: map[string][]tookEvent{}, texts: map[string][]version{},
		}
	}
	return c
}

// spaceHistory is the history of one space.
type spaceHistory struct {
	name string
	rep  *replica.Replica
	// clients are the events of each client, by its number.
	clients map[int]*clientHistory
	sum     Sum
	seen    map[string]int64
	// own are committed follow-ups that have not been handled; done are handled ones, kept as long as a
	// duplicate would go undetected otherwise.
	own  map[string]followUp
	done map[string]bool
	// timers are the pending timers, by name; waits has the times from which delayed events may be
	// handled, own ones and those of other spaces; jobs are the tasks that have not ended, ended those
	// that have.
	timers map[string]string
	waits  map[string]int64
	jobs   map[string]bool
	ended  map[string]bool
	// reported are the keys of the tasks whose ends the space has reported to itself, by event.
	reported map[string]string
	mark     model.Value
	// notices are the notices that are due.
	notices map[string]bool
	// out are the events sent to each other space, by position; in those handled from it.
	out map[string][]sentEvent
	in  map[string][]tookEvent
	// texts are the versions of the watched documents, as text.
	texts    map[string][]version
	lastLane uint64
	lastN    uint64
}

// clientHistory has the events of a client to a space, by number (from 1).
type clientHistory struct {
	// acked is 1 + the lane sequence in an acknowledgement, 0 without one.
	acked []uint64
	// laned is its lane sequence.
	laned []uint64
	// last is the number that was handled last, late those below it that were not.
	last uint32
	late map[uint32]bool
	seen map[uint32]Answer
	// risky events were acknowledged during a loss, doubtful ones were not acknowledged again since, and
	// unsure receipts in seen arrived during a loss.
	risky, doubtful, unsure map[uint32]bool
}

// followUp is an event that a space has sent to itself: with a depth, not before a time.
type followUp struct {
	depth     int
	notBefore int64
}

type sentEvent struct {
	key   uint32 // hash of stream and id
	depth uint8
	at    int64 // when the commit was stored
}

type tookEvent struct {
	key uint32
	// onward is the depth of the event that a hop has sent on.
	onward uint8
	at     int64
}

// version is the value of a document since a commit.
type version struct {
	seq  uint64
	hash uint32
}

// violate records a violation of a rule.
func (c *Checker) violate(r Rule, format string, args ...any) {
	c.Violations[r]++
	if len(c.Examples[r]) < maxExamples {
		c.Examples[r] = append(c.Examples[r], fmt.Sprintf(format, args...))
	}
}

// Sound reports whether no rule is violated.
func (c *Checker) Sound() bool { return len(c.Violations) == 0 }

// Fail records a violation that was found elsewhere.
func (c *Checker) Fail(r Rule, format string, args ...any) { c.violate(r, format, args...) }

func (s *spaceHistory) client(i int) *clientHistory {
	h := s.clients[i]
	if h == nil {
		h = &clientHistory{
			late: map[uint32]bool{}, seen: map[uint32]Answer{},
			risky: map[uint32]bool{}, doubtful: map[uint32]bool{}, unsure: map[uint32]bool{},
		}
		s.clients[i] = h
	}
	return h
}

// grown extends a slice that is indexed by numbers from 1 on.
func grown(list []uint64, n uint32) []uint64 {
	for uint32(len(list)) < n {
		list = append(list, 0)
	}
	return list
}

// Acked records that the server has acknowledged a client's event: stored at a lane sequence,
// or 0 for a duplicate. at is when the client received that.
func (c *Checker) Acked(client, space int, n uint32, lane uint64, at time.Time) {
	h := c.spaces[c.work.Space(space)].client(client)
	h.acked = grown(h.acked, n)
	old, doubtful := h.acked[n-1], h.doubtful[n]
	if old == 0 {
		c.Counts.Acked++
	} else {
		c.Counts.Repeated++
	}
	if old > 1 && lane > 0 && old != lane+1 && !doubtful {
		c.violate(Duplicates, "%s %s: acknowledged as stored at %d and at %d", c.work.Space(space), EventID(client, n), old-1, lane)
	}
	if lane > 0 || old == 0 || doubtful {
		h.acked[n-1] = lane + 1
	}
	switch lost := c.losing(at); {
	case lost && (old == 0 || doubtful):
		h.risky[n], h.doubtful[n] = true, true
	case !lost:
		delete(h.doubtful, n)
	}
}

// Answer is the outcome of an event as its client received it.
type Answer struct {
	Outcome model.Outcome
	Result  uint32 // hash of its text
}

// Received records that a client has received a receipt, at a time.
func (c *Checker) Received(client, space int, n uint32, a Answer, at time.Time) {
	h := c.spaces[c.work.Space(space)].client(client)
	c.Counts.Receipts++
	if old, twice := h.seen[n]; twice && old != a && !h.unsure[n] {
		c.violate(Answers, "%s %s: two answers: %v, then %v", c.work.Space(space), EventID(client, n), old, a)
	}
	h.seen[n] = a
	if h.unsure[n] = c.losing(at); !h.unsure[n] {
		delete(h.unsure, n)
	}
}

// LaneMessage is a message of a LANE stream.
type LaneMessage struct {
	Seq               uint64
	Space, Stream, ID string
	Invalid           bool
}

// Lane records a message of a lane.
func (c *Checker) Lane(m LaneMessage) {
	s := c.spaces[m.Space]
	if s == nil {
		c.violate(Unsent, "lane of %s: event %s %s for a space without senders", m.Space, m.Stream, m.ID)
		return
	}
	if m.Invalid {
		c.Counts.Tombstones++
	}
	client, n, ok := ParseEventID(m.ID)
	if !ok || client >= c.work.Clients {
		return // judged when it is handled
	}
	space, _ := c.work.SpaceNumber(m.Space)
	if want := c.work.Stream(client, space, n); m.Stream != want {
		c.violate(Unsent, "lane of %s: event %s in stream %s, its client sends it to %s", m.Space, m.ID, m.Stream, want)
		return
	}
	h := s.client(client)
	h.laned = grown(h.laned, n)
	if h.laned[n-1] != 0 {
		c.violate(Duplicates, "lane of %s: event %s stands at %d and at %d", m.Space, m.ID, h.laned[n-1], m.Seq)
	}
	h.laned[n-1] = m.Seq
}

// lanes compares the acknowledged events with the contents of the lanes.
func (c *Checker) lanes() {
	for name, s := range c.inOrder() {
		for i, h := range s.clients { // any order: each on its own
			for k, acked := range h.acked {
				n := uint32(k + 1)
				switch {
				case acked == 0:
				case h.doubtful[n] && (k >= len(h.laned) || h.laned[k] == 0):
					c.Counts.LostToPower++
				case h.doubtful[n]: // it was sent again
				case k >= len(h.laned) || h.laned[k] == 0:
					c.violate(Lost, "%s %s: acknowledged, and not in the lane", name, EventID(i, n))
				case acked > 1 && h.laned[k] != acked-1:
					c.violate(Lost, "%s %s: acknowledged as stored at %d, and stands at %d", name, EventID(i, n), acked-1, h.laned[k])
				}
			}
		}
	}
}

// inOrder yields the spaces in the order of their names.
func (c *Checker) inOrder() func(func(string, *spaceHistory) bool) {
	names := make([]string, 0, len(c.spaces))
	for name := range c.spaces { // any order: sorted below
		names = append(names, name)
	}
	slices.SortFunc(names, cmp.Compare[string])
	return func(yield func(string, *spaceHistory) bool) {
		for _, name := range names {
			if !yield(name, c.spaces[name]) {
				return
			}
		}
	}
}
