package settletest_test

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/settletest"
	"github.com/settlehq/settle/space"
)

// Where a test passes its *testing.T, these examples pass Must.

func ExampleNew() {
	w := settletest.New(settletest.Must, airport())
	ham := w.Space("HAM")
	settletest.Call(ham, departure, Departure{Flight: "LH1", Destination: "MUC"})
	settletest.Call(ham, departure, Departure{Flight: "LH2", Late: true})
	fmt.Println(punctuality.Get(ham).Percent, "% of", departed.Get(ham))
	// Output: 50 % of 2
}

// A world may run several programs, chosen by the kind of space. Some spaces may have none.
func ExampleNew_programs() {
	w := settletest.New(settletest.Must, func(space string) *settle.Program {
		if strings.HasPrefix(space, "diary-") {
			return diaries()
		}
		return airport()
	})
	w.Space("diary-1")
	w.Advance(24 * time.Hour)
	fmt.Println(days.Get(w.Space("diary-1")))
	// Output: 1
}

func ExampleWorld_Advance() {
	w := settletest.New(settletest.Must, airport())
	settletest.Call(w.Space("HAM"), departure, Departure{Flight: "LH1", Destination: "MUC"})
	muc := w.Space("MUC")
	for range 3 {
		fmt.Println(w.Now().Format("15:04"), stats.Get(muc).Arrivals)
		w.Advance(time.Hour)
	}
	// Output:
	// 00:00 0
	// 01:00 0
	// 02:00 1
}

func ExampleWorld_AdvanceTo() {
	w := settletest.New(settletest.Must, diaries())
	s := w.Space("home")
	w.AdvanceTo(time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC))
	fmt.Println(days.Get(s))
	// Output: 31
}

func ExampleWorld_AdvanceToNext() {
	w := settletest.New(settletest.Must, diaries(), settletest.StartAt(time.Date(2026, 1, 1, 8, 20, 0, 0, time.UTC)))
	w.Space("home")
	fmt.Println(w.AdvanceToNext().Format("15:04"), w.AdvanceToNext().Format("15:04"))
	next, ok := w.Next()
	fmt.Println(next.Format("15:04"), ok)
	// Output:
	// 09:00 10:00
	// 11:00 true
}

func ExampleWorld_Restart() {
	w := settletest.New(settletest.Must, airport())
	ham := w.Space("HAM")
	settletest.Watch(ham, punctuality)
	settletest.Call(ham, departure, Departure{Flight: "LH1"})
	ham.Mark()
	w.Restart()
	fmt.Println(punctuality.Get(ham).Percent, ham.Runs("punctuality"))
	// Output: 100 0
}

func ExampleWorld_Crash() {
	w := settletest.New(settletest.Must, airport())
	ham := w.Space("HAM")
	settletest.Call(ham, departure, Departure{Flight: "LH1", Destination: "MUC"})
	w.Crash()
	w.Advance(2 * time.Hour)
	fmt.Println(stats.Get(ham).Departures, stats.Get(w.Space("MUC")).Arrivals)
	// Output: 1 1
}

func ExampleWorld_DeadLetters() {
	w := settletest.New(settletest.Must, airport())
	settletest.Send(w.Space("HAM"), departure, Departure{})
	for _, l := range w.DeadLetters() {
		fmt.Println(l)
	}
	// Output: space HAM: event sent-1 on departure failed: a departure has a flight
}

func ExampleWorld_Undelivered() {
	w := settletest.New(settletest.Must, func(space string) *settle.Program {
		if space == "MUC" {
			return nil
		}
		return flying(0)
	}, settletest.AllowUndelivered("arrival"))
	settletest.Call(w.Space("HAM"), departure, Departure{Flight: "LH1", Destination: "MUC"})
	for _, ev := range w.Undelivered() {
		fmt.Println(ev.Space, ev.Stream, ev.Payload)
	}
	// Output: MUC arrival {"flight":"LH1"}
}

func ExampleCall() {
	s := settletest.New(settletest.Must, airport()).Space("HAM")
	fmt.Println(settletest.Call(s, departure, Departure{Flight: "LH1"}))
	// Output: {LH1}
}

func ExampleSend() {
	s := settletest.New(settletest.Must, airport()).Space("HAM")
	rc := settletest.Send(s, departure, Departure{})
	fmt.Println(rc.Outcome, rc.Error)
	// Output: failed a departure has a flight
}

func ExampleRejected() {
	seat := settle.NewStream[int]("seat")
	s := settletest.New(settletest.Must, func(string) *settle.Program {
		p := settle.NewProgram("hall")
		seat.Handle(p, func(_ *settle.Tx, row int) error { return settle.Reject("taken", "choose another seat", row) })
		return p
	}).Space("HAM")
	no := settletest.Rejected(s, seat, 7)
	fmt.Println(no.Code, no.Data)
	// Output: taken 7
}

func ExampleSendID() {
	s := settletest.New(settletest.Must, airport()).Space("HAM")
	settletest.SendID(s, departure, settle.ID("LH1-today"), Departure{Flight: "LH1"})
	settletest.SendID(s, departure, settle.ID("LH1-today"), Departure{Flight: "LH1"})
	fmt.Println(departed.Get(s))
	// Output: 1
}

func ExampleSendAt() {
	w := settletest.New(settletest.Must, airport())
	s := w.Space("HAM")
	settletest.SendAt(s, w.Now().Add(time.Hour), departure, Departure{Flight: "LH1"})
	fmt.Println(departed.Get(s))
	w.Advance(time.Hour)
	fmt.Println(departed.Get(s))
	// Output:
	// 0
	// 1
}

func ExampleExpect() {
	s := settletest.New(settletest.Must, airport()).Space("HAM")
	stats.Set(s, Stats{Departures: 4, Late: 1})
	settletest.Expect(s, punctuality, Punctuality{Percent: 75})
	defer func() { fmt.Println(recover()) }()
	settletest.Expect(s, punctuality, Punctuality{Percent: 80})
	// Output:
	// settletest: @HAM/punctuality is not what is wanted
	//     /percent
	//         got   75
	//         want  80
}

func ExampleWatch() {
	w := settletest.New(settletest.Must, airport())
	s := w.Space("HAM")
	seen := settletest.Watch(s, punctuality)
	settletest.Call(s, departure, Departure{Flight: "LH1"})
	settletest.Call(s, departure, Departure{Flight: "LH2"}) // no change
	settletest.Call(s, departure, Departure{Flight: "LH3", Late: true})
	fmt.Println(seen.Values(), seen.Last())
	seen.Stop()
	// Output: [{0} {100} {66}] {66}
}

// Rows are expected and watched as a map. ExpectKeys compares only the keys.
func ExampleExpectKeys() {
	s := settletest.New(settletest.Must, shop()).Space("shop-1")
	seen := settletest.Watch(s, orders)
	settletest.Call(s, place, Order{Item: "kettle", Cost: 30})
	settletest.Call(s, place, Order{Item: "cup", Cost: 5})
	settletest.ExpectKeys(s, orders, "order-1", "order-2")
	settletest.Expect(s, orders, map[string]Order{
		"order-1": {Item: "kettle", Cost: 30},
		"order-2": {Item: "cup", Cost: 5},
	})
	settletest.Expect(s, orders.At("order-2"), Order{Item: "cup", Cost: 5})
	fmt.Println(len(seen.Values()), seen.Last()["order-2"])
	defer func() { fmt.Println(recover()) }()
	settletest.ExpectKeys(s, orders, "order-1", "order-3")
	// Output:
	// 3 {cup 5}
	// settletest: @shop-1/orders is not what is wanted
	//     not there   "order-3"
	//     not wanted  "order-2"
}

func ExampleSpace_ExpectRuns() {
	s := settletest.New(settletest.Must, airport()).Space("HAM")
	settletest.Watch(s, punctuality)
	s.Mark()
	settletest.Call(s, departure, Departure{Flight: "LH1"})
	s.ExpectRuns("punctuality", 1)
	fmt.Println(s.Ran())
	// Output: [punctuality]
}

func ExampleSpace_Why() {
	s := settletest.New(settletest.Must, airport()).Space("HAM")
	settletest.Call(s, departure, Departure{Flight: "LH1"})
	fmt.Println(s.Why("punctuality"))
	// Output:
	// punctuality: computation, never-ran, dormant, 0 runs
	//   it never ran
	//   it does not run, since nobody needs it
	//   nobody reads what it writes
}

func ExampleSpace_Pending() {
	p := bumping(double, nil, settle.Debounce(time.Minute))
	s := settletest.New(settletest.Must, p).Space("home")
	settletest.Watch(s, result)
	settletest.Call(s, bump)
	fmt.Println(strings.Split(s.Pending(), "\n")[2])
	s.Advance(time.Minute)
	fmt.Printf("%q\n", s.Pending())
	// Output:
	// it is held until 1m0s by its debounce, because of count (handler of bump, event sent-1, transaction 2)
	// ""
}

// A Space has dynamic methods, for programs without types.
func ExampleSpace_Call() {
	p := settle.NewProgram("adder")
	p.Handle("add", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
		tx.Set("last", ev.Payload)
		return ev.Payload, nil
	})
	s := settletest.New(settletest.Must, p).Space("home")
	seen := s.Watch("last")
	fmt.Println(s.Call("add", 3), s.SendID("add", settle.ID("e1"), 4).Outcome)
	s.Expect("last", 4)
	fmt.Println(seen.Values(), s.Get("last"))
	// Output:
	// 3 handled
	// [absent 3 4] 4
}

func ExampleAllowErrors() {
	p := bumping(func(*settle.View) (int64, error) { return 0, errors.New("no rates today") }, nil)
	w := settletest.New(settletest.Must, p, settletest.AllowErrors("result"))
	fmt.Println(result.Get(w.Space("home")), w.Problems())
	// Output: 0 [space home: node result: no rates today]
}

func ExampleWithConfig() {
	p := bumping(nil, func(*settle.Tx) error { return settle.Transient(errors.New("busy")) })
	w := settletest.New(settletest.Must, p, settletest.WithConfig(func(c *space.Config) { c.EventRetries = 1 }))
	fmt.Println(settletest.Send(w.Space("home"), bump).Error)
	// Output: busy
}

// An event of a client on an internal stream is rejected; SendFrom sends as a space.
func ExampleSendFrom() {
	owed := settle.NewCell[int]("owed")
	debit := settle.NewStream[int]("debit").Internal()
	p := settle.NewProgram("ledger")
	debit.Handle(p, func(tx *settle.Tx, cents int) error {
		owed.Update(tx, func(n *int) { *n += cents })
		return nil
	})
	w := settletest.New(settletest.Must, p)
	ann, bob := w.Space("ann"), w.Space("bob")
	fmt.Println(settletest.Rejected(bob, debit, 5).Code)
	fmt.Println(settletest.SendFrom(ann, bob, debit, 5).Outcome, owed.Get(bob))
	// Output:
	// internal-stream
	// handled 5
}
