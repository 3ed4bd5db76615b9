package settletest

import (
	"fmt"
	"slices"
	"time"

	"github.com/settlehq/settle/internal/simkit"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// restBound is how long a fleet may take to come to rest, in virtual time: longer than any
// takeover, retry or hold.
const restBound = 10 * time.Minute

// posted is an event sent by the test.
type posted struct {
	space string
	key   receipts.Key
	at    int64 // not before
}

// outcome is the state of all events according to the logs.
type outcome struct {
	receipts map[string]map[receipts.Key][]*model.Receipt
	sends    []posted
	commits  int
}

// pass lets virtual time pass in the fleet's bubble.
func pass(d time.Duration) { time.Sleep(d) }

// Rest waits until every event sent by the test or by a handler has been handled, and nothing has been
// committed for a while. Events that wait for a future time are left out. It fails the test if an event was
// handled twice, and ends it if the fleet does not come to rest.
func (f *Fleet) Rest() {
	f.t.Helper()
	began, still, commits := time.Now(), 0, -1
	for still < 5 {
		pass(time.Second)
		o := f.outcome()
		why := f.waiting(o)
		if why == "" && o.commits == commits {
			still++
		} else {
			still, commits = 0, o.commits
		}
		if time.Since(began) > restBound {
			f.t.Fatalf("settletest: the fleet has not come to rest within %s: %s", restBound, or(why, "the logs keep growing"))
		}
	}
	f.checkOnce(f.outcome())
	f.noteUndelivered(f.outcome())
	f.report()
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// outcome reads the logs of all spaces that events were sent to, following sends to further spaces
// until no new one appears.
func (f *Fleet) outcome() *outcome {
	o := &outcome{receipts: map[string]map[receipts.Key][]*model.Receipt{}}
	for _, p := range f.posted {
		f.read(o, p.space)
	}
	for i := 0; i < len(o.sends); i++ {
		f.read(o, o.sends[i].space)
	}
	return o
}

func (f *Fleet) read(o *outcome, space string) {
	if o.receipts[space] != nil {
		return
	}
	ended := map[receipts.Key][]*model.Receipt{}
	o.receipts[space] = ended
	for _, e := range f.server.History(space) {
		c, err := model.DecodeCommit(e.Data)
		if err != nil {
			f.t.Fatalf("settletest: the log of space %s: %v", space, err)
		}
		o.commits++
		for i := range c.Txs {
			tx := &c.Txs[i]
			if stream, ok := receipts.Stream(tx.By); ok && tx.Receipt != nil {
				k := receipts.Key{Stream: stream, ID: tx.Receipt.Event}
				ended[k] = append(ended[k], tx.Receipt)
			}
			for _, s := range tx.Sends {
				if s.Timer == "" { // a timer may be cancelled
					o.sends = append(o.sends, posted{s.To, receipts.Key{Stream: s.Stream, ID: s.ID}, s.NotBefore})
				}
			}
		}
	}
}

// waiting describes the first event that lacks a receipt, "" if there is none.
func (f *Fleet) waiting(o *outcome) string {
	for _, list := range [][]posted{f.posted, o.sends} {
		for _, p := range list {
			if len(o.receipts[p.space][p.key]) == 0 && p.at <= time.Now().UnixMilli() && f.hasProgram(p.space) {
				return fmt.Sprintf("event %s on %s of space %s waits", p.key.ID, p.key.Stream, p.space)
			}
		}
	}
	return ""
}

// noteUndelivered records the events that were sent to a space without a program, each once.
func (f *Fleet) noteUndelivered(o *outcome) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range slices.Concat(f.posted, o.sends) {
		if f.undelivered[p] || f.hasProgram(p.space) {
			continue
		}
		f.undelivered[p] = true
		f.problems = append(f.problems, Problem{
			Space: p.space, Kind: simkit.Undelivered, Stream: p.key.Stream, Event: p.key.ID, Text: "the space has no program, so the event waits in its lane",
		})
	}
}

func (f *Fleet) hasProgram(space string) bool {
	p, err := f.programs(space)
	return p != nil && err == nil
}

// checkOnce fails the test if an event has two receipts.
func (f *Fleet) checkOnce(o *outcome) {
	f.t.Helper()
	for space, ended := range o.receipts { // any order: each is a failure of its own
		for k, list := range ended { // any order: likewise
			if len(list) > 1 {
				f.t.Errorf("settletest: event %s on %s of space %s was handled %d times", k.ID, k.Stream, space, len(list))
			}
		}
	}
}

// Receipts returns how many events of a space have ended so far.
func (f *Fleet) Receipts(space string) int {
	o := &outcome{receipts: map[string]map[receipts.Key][]*model.Receipt{}}
	f.read(o, space)
	return len(o.receipts[space])
}

// Takeovers returns how often a worker has taken over a space so far.
func (f *Fleet) Takeovers(space string) int {
	n := 0
	for _, e := range f.server.History(space) {
		if c, err := model.DecodeCommit(e.Data); err == nil && c.Takeover {
			n++
		}
	}
	return n
}
