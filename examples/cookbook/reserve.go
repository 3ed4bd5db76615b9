package cookbook

import (
	"context"
	"fmt"
	"time"

	"github.com/settlehq/settle"
)

// Hold is a seat that is reserved for a trip. It expires unless the trip confirms it.
type Hold struct {
	Trip      string `json:"trip"`
	Confirmed bool   `json:"confirmed"`
}

// Answer is what a flight replies to a trip.
type Answer struct {
	Flight string `json:"flight"`
	Held   bool   `json:"held"`
}

// Trip is the state of a trip: what each flight has answered.
type Trip struct {
	State   string          `json:"state"` // pending, booked, failed
	Answers map[string]bool `json:"answers"`
	Flights []string        `json:"flights"`
}

var (
	// Of a flight.
	capacity = settle.NewCell[int]("capacity").Or(2)
	holds    = settle.NewRows[Hold]("holds")
	reserve  = settle.NewStream[string]("reserve") // the trip that asks
	confirm  = settle.NewStream[string]("confirm")
	release  = settle.NewStream[string]("release")

	// Of a trip.
	trip     = settle.NewCell[Trip]("trip")
	book     = settle.NewStream[[]string]("book") // the flights to book
	answered = settle.NewStream[Answer]("answered")
)

// holdFor is how long a flight keeps a seat for a trip that has not confirmed it.
const holdFor = 10 * time.Minute

// flight keeps seats, and gives them out on request.
func flight() *settle.Program {
	p := settle.NewProgram("flight")
	reserve.Handle(p, func(tx *settle.Tx, from string) error {
		held := holds.Exists(tx, from) || holds.Len(tx) < capacity.Get(tx)
		if held {
			holds.Set(tx, from, Hold{Trip: from})
			release.SetTimer(tx, settle.NameOf(from), tx.Now().Add(holdFor), from)
		}
		answered.Send(tx, settle.To(from), Answer{Flight: tx.Space(), Held: held})
		return nil
	})
	confirm.Handle(p, func(tx *settle.Tx, from string) error {
		if !holds.Exists(tx, from) {
			return fmt.Errorf("the hold of %s has expired", from)
		}
		holds.Set(tx, from, Hold{Trip: from, Confirmed: true})
		tx.CancelTimer(settle.NameOf(from))
		return nil
	})
	release.Handle(p, func(tx *settle.Tx, from string) error {
		holds.Delete(tx, from)
		tx.CancelTimer(settle.NameOf(from))
		return nil
	})
	return p
}

// bookTrip sends the request of a client, and returns the state of the trip when every flight has answered. It may
// be called again under the same id, by the same process or another.
func bookTrip(ctx context.Context, to settle.Space, id settle.EventID, flights []string) (state string, err error) {
	if err := book.Call(ctx, to, id, flights); err != nil {
		return "", err
	}
	for u, err := range trip.Watch(ctx, to) {
		if err != nil {
			return "", err
		}
		if u.Value.State != "pending" {
			return u.Value.State, nil
		}
	}
	return "", ctx.Err() // the flights have not answered in time; the trip goes on without the client
}

// tripProgram reserves a seat on each flight, and confirms when all of them are held.
func tripProgram() *settle.Program {
	p := settle.NewProgram("trip")
	book.Handle(p, func(tx *settle.Tx, flights []string) error {
		trip.Set(tx, Trip{State: "pending", Flights: flights, Answers: map[string]bool{}})
		for _, f := range flights {
			reserve.Send(tx, settle.To(f), tx.Space())
		}
		return nil
	})
	answered.Handle(p, func(tx *settle.Tx, a Answer) error {
		t := trip.Get(tx)
		if t.State != "pending" { // nothing waits for this answer
			if a.Held {
				release.Send(tx, settle.To(a.Flight), tx.Space())
			}
			return nil
		}
		t.Answers[a.Flight] = a.Held
		if len(t.Answers) == len(t.Flights) {
			t.State = "booked"
			for _, held := range t.Answers { // any order: one refusal is enough
				if !held {
					t.State = "failed"
				}
			}
			for _, f := range t.Flights {
				if t.State == "booked" {
					confirm.Send(tx, settle.To(f), tx.Space())
				} else {
					release.Send(tx, settle.To(f), tx.Space())
				}
			}
		}
		trip.Set(tx, t)
		return nil
	})
	return p
}
