package ordered_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/internal/raced"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/ordered"
)

// story is a random run of a few keys and servers. The oracle is a single server that never fails, and
// handles one event after the other.
type story struct {
	*world
	mu      sync.Mutex
	r       *rand.Rand
	servers []*serving
	started int
	killed  map[string]bool
	sent    map[string]map[string]payment // by key and id: what was sent from outside
}

// n returns a random number below limit; it is safe for concurrent use.
func (s *story) n(limit int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.r.IntN(limit)
}

var storyKeys = []string{"alice", "bob", "carol", "dave"}

func (s *story) handlers() map[string]ordered.Handler {
	h := accounts()
	h["fail"] = func(tx *ordered.Tx, _ *model.Event) (any, error) {
		tx.Set("balance", 1<<40)
		tx.Send(ordered.To("bob"), "pay", payment{Cents: 1 << 40})
		return nil, errors.New("no")
	}
	h["flaky"] = func(tx *ordered.Tx, ev *model.Event) (any, error) {
		if s.n(2) == 0 {
			tx.Set("balance", 1<<40)
			return nil, ordered.Transient(errors.New("not now"))
		}
		return nil, nil
	}
	return h
}

// fate injects faults into a third of the requests, and delays some, so that more is handled while they are
// in flight.
func (s *story) fate(op membus.Op) membus.Fate {
	if op.Label == "append" && s.n(3) == 0 {
		s.Pass(time.Duration(s.n(400)) * time.Millisecond)
	}
	if op.Try > 4 || s.n(3) > 0 {
		return membus.Deliver
	}
	return []membus.Fate{membus.DropAck, membus.DropRequest, membus.Duplicate, membus.Late}[s.n(4)]
}

func (s *story) start() {
	s.started++
	ttl := []time.Duration{time.Millisecond, 2 * time.Second}[s.n(2)] // the first takes all others for dead
	cfg := ordered.Config{Name: fmt.Sprint("o", s.started), Handlers: s.handlers(), TTL: ttl, Idle: 2 * time.Second, Checkpoint: 400 * time.Millisecond}
	s.servers = append(s.servers, s.serve(cfg, s.fate))
}

func (s *story) end(how func(*serving)) {
	if len(s.servers) == 0 {
		return
	}
	i := s.n(len(s.servers))
	how(s.servers[i])
	s.killed[s.servers[i].name] = true
	s.servers = slices.Delete(s.servers, i, i+1)
}

func (s *story) sendOne() {
	key := storyKeys[s.n(len(storyKeys))]
	id := fmt.Sprint("e", s.n(300)) // some of them again
	stream := []string{"pay", "pay", "pay", "fail", "flaky", "nobody"}[len(id+key)*7%6]
	if _, again := s.sent[key][id]; again {
		return
	}
	p := payment{Cents: int64(s.n(9))}
	if s.n(3) == 0 {
		p.To = storyKeys[s.n(len(storyKeys))]
	}
	s.sent[key][id] = payment{}
	if stream == "pay" {
		s.sent[key][id] = p
	}
	s.Send(key, stream, id, fmt.Sprintf(`{"cents":%d,"to":%q}`, p.Cents, p.To))
}

func (s *story) step() {
	switch n := s.n(20); {
	case n < 12:
		for range 1 + s.n(4) {
			s.sendOne()
		}
	case n < 15:
		s.Pass(time.Duration(s.n(900)) * time.Millisecond)
	case n < 16 && len(s.servers) < 3:
		s.start()
	case n < 17:
		s.end((*serving).crash)
	case n < 18:
		s.end(s.stop)
	case n < 19:
		for _, p := range s.servers {
			p.bus.Release()
		}
	default:
		s.Pass(3 * time.Second)
	}
}

// wantTold compares every key with the oracle.
func (s *story) wantTold() {
	s.Helper()
	balance, events := map[string]int64{}, map[string]int{}
	for key, sent := range s.sent {
		for _, p := range sent {
			events[key]++
			balance[key] += p.Cents
			if p.To != "" {
				events[p.To]++
				balance[p.To] += p.Cents
			}
		}
	}
	for _, key := range storyKeys {
		s.wantOnceAndInOrder(key, events[key])
		if got := s.Doc(key, "balance"); got != fmt.Sprint(balance[key]) && balance[key] != 0 {
			s.Errorf("%s has %s, the oracle has %d", key, got, balance[key])
		}
		last := map[string]uint64{}
		var seen []string
		for _, rc := range s.Receipts(key) {
			if origin, is := model.OriginOf(rc.Event); is && rc.Pos > 0 {
				if rc.Pos != last[origin.Space]+1 {
					s.Errorf("%s handled position %d of %s after %d", key, rc.Pos, origin.Space, last[origin.Space])
				}
				last[origin.Space] = rc.Pos
			}
			if rc.Outcome == model.Handled && !rc.Result.IsAbsent() && !rc.Result.IsNull() {
				seen = append(seen, rc.Event)
			}
		}
		want, _ := model.Of(seen)
		if got := s.Doc(key, "seen"); got != want.String() && len(seen) > 0 {
			s.Errorf("%s has seen %s, its receipts say %s", key, got, want)
		}
	}
}

func (s *story) ended() bool {
	n, want := 0, 0
	for _, key := range storyKeys {
		n += len(s.Receipts(key))
		for _, p := range s.sent[key] {
			want++
			if p.To != "" {
				want++
			}
		}
	}
	return n >= want
}

// givenUp returns the key and the id of an event that failed because it killed its processes, "" if there is none.
func (s *story) givenUp() (in, id string) {
	for _, key := range storyKeys {
		for _, rc := range s.Receipts(key) {
			if strings.Contains(rc.Error, "never came back") {
				return key, rc.Event
			}
		}
	}
	return "", ""
}

// wantKilled checks that each attempt at an event that was given up was in a process that was killed: an
// event that happened to run there may be given up without being the cause. Another key may have an event with this id.
func (s *story) wantKilled(key, id string) {
	s.Helper()
	for _, e := range s.Server.History(key) {
		c, err := model.DecodeCommit(e.Data)
		if err != nil || c.Trying == nil || c.Trying.Event != id || c.Trying.Back {
			continue
		}
		if name, _, _ := strings.Cut(c.Runtime, "-"); !s.killed[name] {
			s.Errorf("%s was given up, but %s, which attempted it at %d, is alive; the log of %s:\n%s", id, name, e.Seq, key, s.commits(key))
			return
		}
	}
}

// commits returns the log of a key as text.
func (s *story) commits(key string) string {
	var b strings.Builder
	for _, e := range s.Server.History(key) {
		fmt.Fprintf(&b, "%d %s\n", e.Seq, e.Data)
	}
	return b.String()
}

func TestProperty_EndsAsIfOneServerHadNeverFailed(t *testing.T) {
	for seed := range uint64(raced.Fewer(150, 20)) {
		synctest.Test(t, func(t *testing.T) {
			defer func() { // here, as a failure ends the test outside, too
				if t.Failed() {
					t.Logf("seed %d", seed)
				}
			}()
			w := newWorld(t, 2)
			s := &story{world: w, r: rand.New(rand.NewPCG(seed, 7)), sent: map[string]map[string]payment{}, killed: map[string]bool{}}
			for _, key := range storyKeys {
				s.sent[key] = map[string]payment{}
			}
			for range 120 {
				s.step()
			}
			for len(s.servers) > 0 {
				s.end((*serving).crash)
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
			defer cancel()
			last := s.serve(ordered.Config{Name: "last", Handlers: s.handlers()}, nil)
			s.Eventually("all events have ended", func() bool {
				_, given := s.givenUp()
				return s.ended() || given != "" || ctx.Err() != nil
			})
			key, id := s.givenUp()
			s.Pass(10 * time.Second) // until processes that were killed have ended, too
			if id != "" {
				s.wantKilled(key, id)
			} else {
				s.wantTold()
			}
			s.stop(last)
		})
	}
}
