package auction_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/examples/auction"
	"github.com/settlehq/settle/program/star"
	"github.com/settlehq/settle/program/startest"
	"github.com/settlehq/settle/settletest"
	"github.com/settlehq/settle/worker"
)

const extension = 2 * time.Minute

// broken is the lot for which no payment succeeds.
const broken = "lot-3"

func charge(_ context.Context, _ string, c auction.Charge) (auction.Charged, error) {
	if c.Lot == broken {
		return auction.Charged{}, settle.Permanent(errors.New("declined"))
	}
	return auction.Charged{Number: "ch-" + c.Lot}, nil
}

func TestTheTestsOfTheStarlarkProgramPass(t *testing.T) {
	t.Parallel()
	src, err := auction.Source()
	if err != nil {
		t.Fatal(err)
	}
	results, err := startest.Run(t.Context(), src, "auction_test.star", star.TestOptions{})
	if err != nil || len(results) == 0 {
		t.Fatalf("%d tests: %v", len(results), err)
	}
	for _, r := range results {
		if r.Err != nil {
			t.Errorf("%s: %v", r.Name, r.Err)
		}
	}
}

// byHand is the same auction in a process that does not crash.
type byHand struct {
	now    time.Duration
	lots   map[string]*lotByHand
	purses map[string]int
}

type lotByHand struct {
	closes       time.Duration
	best         int
	bidder, paid string
	closed       bool
}

func (h *byHand) free(bidder string) int {
	free := h.purses[bidder]
	for _, l := range h.lots {
		if l.bidder == bidder && !l.closed {
			free -= l.best
		}
	}
	return free
}

func (h *byHand) bid(bidder, lot string, cents int) (rejected bool) {
	if cents > h.free(bidder) {
		return true
	}
	if l := h.lots[lot]; !l.closed && cents > l.best {
		l.best, l.bidder, l.closes = cents, bidder, max(l.closes, h.now+extension)
	}
	return false
}

func (h *byHand) advance(d time.Duration) {
	h.now += d
	for name, l := range h.lots {
		if l.closed || l.closes > h.now {
			continue
		}
		l.closed = true
		switch {
		case l.bidder == "":
		case name == broken:
			l.paid = "failed"
		default:
			l.paid = "ch-" + name
			h.purses[l.bidder] -= l.best
		}
	}
}

// Bids, crashes and time in any order come to what they come to by hand.
func TestAnyAuctionIsWhatItIsByHand(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := settletest.New(t, auction.Program(extension, charge))
		h := &byHand{lots: map[string]*lotByHand{}, purses: map[string]int{"ann": 5000, "ben": 4000, "cem": 9000}}
		bidders, lots := slices.Sorted(maps.Keys(h.purses)), []string{"lot-1", "lot-2", broken}
		for _, name := range bidders {
			settletest.Call(w.Space(name), auction.Deposit, h.purses[name])
		}
		for i, name := range lots {
			d := time.Duration(i+1) * 10 * time.Minute
			settletest.Call(w.Space(name), auction.Open, auction.Opening{Title: name, Least: 1, Millis: int(d.Milliseconds())})
			h.lots[name] = &lotByHand{closes: d}
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				w.Crash()
			case 1, 2:
				d := time.Duration(rapid.IntRange(1, 300).Draw(t, "seconds")) * time.Second
				w.Advance(d)
				w.Perform()
				h.advance(d)
			default:
				bidder, o := rapid.SampledFrom(bidders).Draw(t, "bidder"), auction.Offer{
					Lot: rapid.SampledFrom(lots).Draw(t, "lot"), Cents: rapid.IntRange(1, 6000).Draw(t, "cents"),
				}
				if h.bid(bidder, o.Lot, o.Cents) {
					if r := settletest.Rejected(w.Space(bidder), auction.Bid, o); r.Code != "credit" {
						t.Fatalf("%s bids %+v: %v", bidder, o, r)
					}
				} else {
					settletest.Call(w.Space(bidder), auction.Bid, o)
				}
			}
			for _, name := range bidders {
				settletest.Expect(w.Space(name), auction.Free, h.free(name))
			}
		}
		w.Advance(time.Hour)
		w.Perform()
		h.advance(time.Hour)
		board := auction.Board.Get(w.Space("hall"))
		for name, l := range h.lots {
			if got := board[name]; got.Best != l.best || got.Bidder != l.bidder || got.Payment != l.paid || got.State == "open" {
				t.Fatalf("%s is %+v on the board, and by hand %+v", name, got, l)
			}
		}
		for _, name := range bidders {
			if p := auction.ThePurse.Get(w.Space(name)); p.Cents != h.purses[name] || len(p.Held) > 0 {
				t.Fatalf("%s has %+v, and by hand %d", name, p, h.purses[name])
			}
		}
	})
}

// bank remembers what was charged, by key.
type bank struct {
	mu      sync.Mutex
	charged map[string]auction.Charge
}

func (b *bank) charge(_ context.Context, key string, c auction.Charge) (auction.Charged, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if was, is := b.charged[key]; is && was != c {
		return auction.Charged{}, fmt.Errorf("%s is charged twice: %+v and %+v", key, was, c)
	}
	b.charged[key] = c
	return auction.Charged{Number: key}, nil
}

// With a server, bidders that bid at the same time, and workers that are killed: in the end, what was charged is what was won, and
// what the bidders lack.
func TestNoMoneyIsLostOrPromisedTwiceWhateverIsKilled(t *testing.T) {
	t.Parallel()
	service := &bank{charged: map[string]auction.Charge{}}
	d, err := settle.Start(t.Context(), settle.Config{
		Programs: settle.Always(auction.Program(20*time.Millisecond, service.charge)), Options: worker.Options{Heartbeat: 100 * time.Millisecond},
		Server: embedded.Config{StoreDir: t.TempDir(), Fsync: embedded.FsyncInterval},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Stop(context.Background()) })
	const lots, bidders, bids, deposit = 4, 5, 30, 10_000
	c, ctx := d.Client(), t.Context()
	lot := func(i int) settle.Space { return c.Space(fmt.Sprintf("lot-%d", i)) }
	bidder := func(i int) settle.Space { return c.Space(fmt.Sprintf("bidder-%d", i)) }
	for i := range lots {
		if err := auction.Open.Call(ctx, lot(i), settle.ID("open"), auction.Opening{Least: 1, Millis: 1000}); err != nil {
			t.Fatal(err)
		}
	}
	var g sync.WaitGroup
	for i := range bidders {
		g.Go(func() {
			if err := auction.Deposit.Call(ctx, bidder(i), settle.ID("d"), deposit); err != nil {
				t.Error(err)
			}
			for n := range bids {
				o := auction.Offer{Lot: fmt.Sprintf("lot-%d", (i+n)%lots), Cents: 100 + 97*n + i}
				err := auction.Bid.Call(ctx, bidder(i), settle.ID(fmt.Sprint("b", n)), o)
				if r, rejected := errors.AsType[*settle.Rejection](err); err != nil && (!rejected || r.Code != "credit") {
					t.Error(err)
				}
				if i == 0 && n%10 == 5 {
					d.KillWorker(d.Workers()[0])
					if _, err := d.AddWorker(ctx); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	g.Wait()
	sold := map[string]auction.Line{}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for u, err := range auction.Board.Watch(ctx, c.Space("hall")) {
		if err != nil {
			t.Fatal(err)
		}
		over := len(u.Value) == lots
		for _, l := range u.Value {
			over = over && l.State == "sold" && l.Payment != ""
		}
		if sold = u.Value; over {
			break
		}
	}
	left := 0
	for i := range bidders {
		var p auction.Purse
		for u, err := range auction.ThePurse.Watch(ctx, bidder(i)) {
			if err != nil {
				t.Fatalf("bidder %d has %+v: %v", i, p, err)
			}
			// What was held for a bid that came too late may be on its way back.
			if p = u.Value; len(p.Held) == 0 {
				break
			}
		}
		left += p.Cents
	}
	if len(service.charged) != lots {
		t.Errorf("charged: %v", service.charged)
	}
	for key, c := range service.charged {
		l := sold[c.Lot]
		if l.Best != c.Cents || l.Bidder != c.From {
			t.Errorf("%s: charged %+v, sold %+v", key, c, l)
		}
		left += c.Cents
	}
	if left != bidders*deposit {
		t.Errorf("%d of %d cents are left", left, bidders*deposit)
	}
}
