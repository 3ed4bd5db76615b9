package auction

import (
	"context"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/space"
)

// Lot is the document of a lot.
type Lot struct {
	Title   string    `json:"title"`
	State   string    `json:"state"` // "" before it is opened, open, sold, unsold
	Least   int       `json:"least"`
	Best    int       `json:"best"`
	Bidder  string    `json:"bidder"`
	Bids    int       `json:"bids"`
	Closes  time.Time `json:"closes"`
	Payment string    `json:"payment"` // its number, or "failed"
}

// Purse is the document of a bidder. Held is what is reserved, by lot.
type Purse struct {
	Cents int            `json:"cents"`
	Held  map[string]int `json:"held"`
	Won   []string       `json:"won"`
}

type (
	// Opening opens a lot.
	Opening struct {
		Title  string `json:"title"`
		Least  int    `json:"least"`
		Millis int    `json:"millis"` // until it closes
	}
	// Offer is a bid of a bidder.
	Offer struct {
		Lot   string `json:"lot"`
		Cents int    `json:"cents"`
	}
	// Charge is what is to be paid.
	Charge struct {
		From  string `json:"from"`
		Lot   string `json:"lot"`
		Cents int    `json:"cents"`
	}
	// Charged is a payment.
	Charged struct {
		Number string `json:"number"`
	}
	// Line is a lot on the board.
	Line struct {
		Title   string `json:"title"`
		State   string `json:"state"`
		Best    int    `json:"best"`
		Bidder  string `json:"bidder"`
		Payment string `json:"payment"`
	}
)

// The names of lots.
var (
	TheLot  = settle.NewCell[Lot]("lot")
	Open    = settle.NewStream[Opening]("open")
	offer   = settle.NewStream[int]("offer").Internal() // from a bidder
	closing = settle.NewTrigger("close").Internal()
	settled = settle.NewStream[string]("settled").Internal() // from the bidder
)

// The names of bidders.
var (
	ThePurse = settle.NewCell[Purse]("purse")
	Free     = settle.NewDerived[int]("free") // what is not reserved
	Deposit  = settle.NewStream[int]("deposit")
	Bid      = settle.NewStream[Offer]("bid")
	outbid   = settle.NewStream[int]("outbid").Internal() // from a lot
	won      = settle.NewStream[int]("won").Internal()    // from a lot
	pay      = settle.NewAction[Charge, Charged]("pay")
)

// Board is in the hall, which shows all lots, by name. It gets no events: a read or a watch creates it.
var Board = settle.NewDerived[map[string]Line]("board")

// Program returns the program of all spaces. A bid leaves at least the time extension for another one. A charge may be repeated under its key.
func Program(extension time.Duration, charge func(ctx context.Context, key string, c Charge) (Charged, error)) *settle.Program {
	p := settle.NewProgram("auction").MadeByReads("hall")
	handleLot(p, extension)
	handleBidder(p)
	pay.Perform(p, charge, settle.Attempts(5))
	Board.Compute(p, func(v *settle.View) (map[string]Line, error) {
		board := map[string]Line{}
		for name, l := range TheLot.Across(v, settle.All("lot-*")) {
			board[name] = Line{l.Title, l.State, l.Best, l.Bidder, l.Payment}
		}
		return board, nil
	})
	return p
}

func handleLot(p *settle.Program, extension time.Duration) {
	Open.Handle(p, func(tx *settle.Tx, o Opening) error {
		if TheLot.Exists(tx) {
			return settle.Reject("open", "the lot was opened before", nil)
		}
		closes := tx.Now().Add(time.Duration(o.Millis) * time.Millisecond)
		TheLot.Set(tx, Lot{Title: o.Title, State: "open", Least: o.Least, Closes: closes})
		closing.SetTimer(tx, "close", closes)
		return nil
	})
	offer.Handle(p, func(tx *settle.Tx, cents int) error {
		l, bidder := TheLot.Get(tx), tx.Event().Origin()
		if l.State != "open" || cents < l.Least || cents <= l.Best {
			outbid.Send(tx, settle.To(bidder), cents)
			return nil
		}
		if l.Bids > 0 {
			outbid.Send(tx, settle.To(l.Bidder), l.Best)
		}
		l.Best, l.Bidder, l.Bids = cents, bidder, l.Bids+1
		if end := tx.Now().Add(extension); end.After(l.Closes) {
			l.Closes = end
			closing.SetTimer(tx, "close", end) // replaces the timer
		}
		TheLot.Set(tx, l)
		return nil
	})
	closing.Handle(p, func(tx *settle.Tx) error {
		TheLot.Update(tx, func(l *Lot) {
			l.State = "unsold"
			if l.Bids > 0 {
				l.State = "sold"
				won.Send(tx, settle.To(l.Bidder), l.Best)
			}
		})
		return nil
	})
	settled.Handle(p, func(tx *settle.Tx, payment string) error {
		if tx.Event().Origin() == TheLot.Get(tx).Bidder {
			TheLot.Update(tx, func(l *Lot) { l.Payment = payment })
		}
		return nil
	})
}

// hold reserves money for a lot, or gives it back.
func (b *Purse) hold(lot string, cents int) {
	if b.Held == nil {
		b.Held = map[string]int{}
	}
	if b.Held[lot] += cents; b.Held[lot] == 0 {
		delete(b.Held, lot)
	}
}

func handleBidder(p *settle.Program) {
	Free.Compute(p, func(v *settle.View) (int, error) {
		b := ThePurse.Get(v)
		for _, cents := range b.Held {
			b.Cents -= cents
		}
		return b.Cents, nil
	})
	Deposit.Handle(p, func(tx *settle.Tx, cents int) error {
		if cents <= 0 {
			return settle.Reject("cents", "deposit more than nothing", nil)
		}
		ThePurse.Update(tx, func(b *Purse) { b.Cents += cents })
		return nil
	})
	Bid.Handle(p, func(tx *settle.Tx, o Offer) error {
		if free := Free.Get(tx); o.Cents <= 0 || o.Cents > free {
			return settle.Reject("credit", "there is not as much for a bid", map[string]int{"free": free})
		}
		ThePurse.Update(tx, func(b *Purse) { b.hold(o.Lot, o.Cents) })
		offer.Send(tx, settle.To(o.Lot), o.Cents)
		return nil
	})
	outbid.Handle(p, func(tx *settle.Tx, cents int) error {
		ThePurse.Update(tx, func(b *Purse) { b.hold(tx.Event().Origin(), -cents) })
		return nil
	})
	won.Handle(p, func(tx *settle.Tx, cents int) error {
		lot := tx.Event().Origin()
		pay.Start(tx, lot, Charge{From: tx.Space(), Lot: lot, Cents: cents})
		return nil
	})
	// The money stays reserved until the payment has ended.
	pay.Done(p, func(tx *settle.Tx, t settle.Task[Charge, Charged]) error {
		payment := "failed"
		ThePurse.Update(tx, func(b *Purse) {
			b.hold(t.Key, -t.In.Cents)
			if t.State == space.TaskDone {
				payment, b.Cents, b.Won = t.Out.Number, b.Cents-t.In.Cents, append(b.Won, t.Key)
			}
		})
		settled.Send(tx, settle.To(t.Key), payment)
		return nil
	})
}
