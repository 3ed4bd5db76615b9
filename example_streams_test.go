package settle_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/cron"
	"github.com/settlehq/settle/settletest"
)

// Transfer is the payload of an event.
type Transfer struct {
	To     string `json:"to"`
	Amount int64  `json:"amount"`
}

// Check rejects what the types accept.
func (t Transfer) Check() error {
	if t.Amount <= 0 {
		return fmt.Errorf("amount is %d; it must be more than 0", t.Amount)
	}
	return nil
}

// A handler handles events of a stream: its writes and sends take effect together with the receipt,
// once, or not at all.
func ExampleNewStream() {
	balance := settle.NewCell[int64]("balance")
	transfer := settle.NewRequest[Transfer, int64]("transfer")
	credit := settle.NewStream[int64]("credit")

	p := settle.NewProgram("bank")
	transfer.Handle(p, func(tx *settle.Tx, t Transfer) (int64, error) {
		left := balance.Get(tx) - t.Amount
		if left < 0 {
			return 0, errors.New("there is not enough on the account")
		}
		balance.Set(tx, left)
		credit.Send(tx, settle.To(t.To), t.Amount) // leaves if and only if this transaction is in the log
		return left, nil
	})
	credit.Handle(p, func(tx *settle.Tx, amount int64) error {
		balance.Update(tx, func(b *int64) { *b += amount })
		return nil
	})

	w := settletest.New(settletest.Must, p)
	ann, bob := w.Space("ann"), w.Space("bob")
	balance.Set(ann, 100)
	fmt.Println("left:", settletest.Call(ann, transfer, Transfer{To: "bob", Amount: 30}))
	fmt.Println("bob has", balance.Get(bob))

	r := settletest.SendID(ann, transfer, settle.ID("t-2"), Transfer{To: "bob", Amount: 40})
	again := settletest.SendID(ann, transfer, settle.ID("t-2"), Transfer{To: "bob", Amount: 40}) // it is the same event
	fmt.Println(r.Result, again.Result, balance.Get(bob))

	fmt.Println(settletest.Send(ann, transfer, Transfer{To: "bob", Amount: 50}).Error)
	fmt.Println(settletest.Send(ann, transfer, Transfer{To: "bob"}).Error)
	fmt.Println(ann.Send("transfer", map[string]string{"amount": "ten"}).Error)
	// Output:
	// left: 70
	// bob has 30
	// 30 30 70
	// there is not enough on the account
	// payload of transfer: amount is 0; it must be more than 0
	// payload of transfer: /amount: a string is here; an integer is wanted
}

// Events can wait for a time, and so can timers of a space, which can be set again and cancelled.
func ExampleStream_SetTimer() {
	seen := settle.NewTrigger("seen")
	gone := settle.NewTrigger("gone")
	here := settle.NewCell[bool]("here")

	p := settle.NewProgram("presence")
	seen.Handle(p, func(tx *settle.Tx) error {
		here.Set(tx, true)
		gone.SetTimer(tx, "lease", tx.Now().Add(time.Minute))
		return nil
	})
	gone.Handle(p, func(tx *settle.Tx) error {
		here.Set(tx, false)
		return nil
	})

	w := settletest.New(settletest.Must, p)
	ann := w.Space("ann")
	for range 3 {
		settletest.Call(ann, seen)
		w.Advance(50 * time.Second)
		fmt.Print(here.Get(ann), " ")
	}
	w.Advance(10 * time.Second)
	fmt.Println(here.Get(ann))
	// Output:
	// true true true false
}

// What the sender must know is a result or a rejection. An error is for a problem that an operator fixes before
// redriving the event.
func ExampleRequest_Handle() {
	type Ticket struct {
		Place int
		Price int
	}
	const places = 2
	cars := settle.NewRows[int]("cars") // places by number plate
	tariff := settle.NewCell[int]("tariff")
	park := settle.NewRequest[string, Ticket]("park")

	p := settle.NewProgram("garage")
	park.Handle(p, func(tx *settle.Tx, plate string) (Ticket, error) {
		price, ok := tariff.Lookup(tx)
		switch {
		case !ok: // an operator has to fix that: the event is a dead letter until then
			return Ticket{}, errors.New("the garage has no tariff; set one, and redrive this event")
		case cars.Len(tx) == places: // an answer
			return Ticket{}, settle.Reject("full", "no place is left", nil)
		}
		place := cars.Len(tx) + 1
		cars.Set(tx, plate, place)
		return Ticket{Place: place, Price: price}, nil
	})

	w := settletest.New(settletest.Must, p)
	garage := w.Space("garage")
	fmt.Println(settletest.Send(garage, park, "HH-A 1").Error)
	tariff.Set(garage, 3)
	for _, plate := range []string{"HH-A 1", "HH-B 2"} {
		fmt.Println(settletest.Call(garage, park, plate))
	}
	fmt.Println(settletest.Rejected(garage, park, "HH-C 3"))
	fmt.Println(len(w.DeadLetters()), "dead letter")
	// Output:
	// the garage has no tariff; set one, and redrive this event
	// {1 3}
	// {2 3}
	// full: no place is left
	// 1 dead letter
}

// A timer for each row, with a name derived from the row's key.
func ExampleNameOf() {
	type Lease struct {
		Owner string
	}
	leases := settle.NewRows[Lease]("leases") // by address, as "10.0.0.7"
	rent := settle.NewStream[string]("rent")
	expire := settle.NewStream[string]("expire")

	p := settle.NewProgram("leases")
	rent.Handle(p, func(tx *settle.Tx, address string) error {
		leases.Set(tx, address, Lease{Owner: "ann"})
		expire.SetTimer(tx, settle.NameOf(address), tx.Now().Add(time.Hour), address)
		return nil
	})
	expire.Handle(p, func(tx *settle.Tx, address string) error {
		leases.Delete(tx, address)
		return nil
	})

	w := settletest.New(settletest.Must, p)
	s := w.Space("net")
	settletest.Call(s, rent, "10.0.0.7")
	w.Advance(40 * time.Minute)
	settletest.Call(s, rent, "10.0.0.8")
	settletest.Call(s, rent, "10.0.0.7") // sets its timer again
	w.Advance(time.Hour - time.Second)
	fmt.Println(leases.Keys(s))
	w.Advance(time.Second)
	fmt.Println(leases.Keys(s))
	fmt.Println(settle.NameOf("order-7"), settle.NameOf("10.0.0.7"))
	// Output:
	// [10.0.0.7 10.0.0.8]
	// []
	// order-7 -key-2c74rat9f1g17t4dobucuefp38
}

// A job sends an event again and again. Missed ticks are one event, unless an option says otherwise.
func ExampleProgram_Cron() {
	report := settle.NewStream[cron.Tick]("report")
	remind, rent := settle.NewStream[cron.Tick]("remind"), settle.NewStream[cron.Tick]("rent")
	days := settle.NewCell[[]string]("days")

	p := settle.NewProgram("office")
	p.Cron("weekdays", "0 9 * * MON-FRI", report)
	p.Cron("lunch", "0 12 * * *", remind, cron.SkipMissed(time.Hour)) // none that is later than that
	p.Cron("rent", "0 0 1 * *", rent, cron.EveryMissed(24))           // each month, up to two years of them
	report.Handle(p, func(tx *settle.Tx, t cron.Tick) error {
		days.Update(tx, func(d *[]string) { *d = append(*d, t.At.Format("Mon 15:04")) })
		return nil
	})
	remind.Handle(p, func(tx *settle.Tx, t cron.Tick) error { return nil })
	rent.Handle(p, func(tx *settle.Tx, t cron.Tick) error { return nil })

	w := settletest.New(settletest.Must, p, settletest.StartAt(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
	office := w.Space("office")
	w.Advance(5 * 24 * time.Hour)
	fmt.Println(days.Get(office))
	// Output:
	// [Thu 09:00 Fri 09:00 Mon 09:00]
}

// After a transient error the event is tried again, five times by default.
func ExampleTransient() {
	tries := 0
	flaky := settle.NewRequest[struct{}, string]("flaky")
	p := settle.NewProgram("p")
	flaky.Handle(p, func(tx *settle.Tx, _ struct{}) (string, error) {
		if tries++; tries < 3 { // only a test may keep state outside of documents
			return "", settle.Transient(errors.New("not yet"))
		}
		return "done", nil
	})

	w := settletest.New(settletest.Must, p, settletest.WithoutValidator())
	s := w.Space("s")
	settletest.SendID(s, flaky, settle.ID("e1"))
	w.Advance(time.Second)
	r, _ := s.Receipt("flaky", settle.ID("e1"))
	fmt.Println(r.Outcome, r.Result, "after", r.Attempts, "attempts")
	// Output:
	// handled "done" after 3 attempts
}

// Programs of several kinds share a deployment; the name of a space determines its program.
func ExampleAlways() {
	p := settle.NewProgram("counter")
	programs := settle.Always(p)
	fmt.Println(programs("alice").Name(), programs("bob").Name())
	// Output:
	// counter counter
}

// A program is checked when it is to run, or before.
func ExampleNewProgram() {
	p := settle.NewProgram("shop")
	total := settle.NewDerived[int]("total")
	total.Compute(p, func(*settle.View) (int, error) { return 0, nil })
	total.Compute(p, func(*settle.View) (int, error) { return 1, nil })
	fmt.Println(p.Err())
	// Output:
	// program shop: node "total": this id is taken
}

// Values represent documents without a Go type.
func ExampleValueOf() {
	v, err := settle.ValueOf(map[string]any{"legs": []int{1, 2}})
	fmt.Println(v, v.Get("legs").Len(), err)
	// Output:
	// {"legs":[1,2]} 2 <nil>
}

// A timed id makes retries safe forever: beyond the horizon it is refused.
func ExampleTimedID() {
	fmt.Println(settle.TimedID(time.Date(2026, 1, 1, 9, 0, 0, 0, time.UTC), "order-17").String())
	// Output:
	// at-019b78c90a80-order-17
}
