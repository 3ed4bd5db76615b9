package cookbook

import (
	"time"

	"github.com/settlehq/settle"
)

// Auction is the state of one auction.
type Auction struct {
	Closes time.Time `json:"closes"`
	Closed bool      `json:"closed"`
	Best   int       `json:"best"`
	Bidder string    `json:"bidder"`
}

// Bid is an offer.
type Bid struct {
	Bidder string `json:"bidder"`
	Amount int    `json:"amount"`
}

// BidResult is the answer to a bid.
type BidResult struct {
	Leads  bool   `json:"leads"`
	Reason string `json:"reason"`
}

var (
	auction   = settle.NewCell[Auction]("auction")
	open      = settle.NewStream[time.Time]("open") // when the auction closes
	bid       = settle.NewRequest[Bid, BidResult]("bid")
	closeSale = settle.NewTrigger("close")
)

// extension is by how much a bid shortly before the end moves the end.
const extension = 5 * time.Minute

func auctions() *settle.Program {
	p := settle.NewProgram("auctions")
	open.Handle(p, func(tx *settle.Tx, closes time.Time) error {
		auction.Set(tx, Auction{Closes: closes})
		closeSale.SetTimer(tx, "close", closes)
		return nil
	})
	bid.Handle(p, func(tx *settle.Tx, b Bid) (BidResult, error) {
		a := auction.Get(tx)
		switch {
		case a.Closed || a.Closes.IsZero():
			return BidResult{Reason: "the auction is not open"}, nil
		case b.Amount <= a.Best:
			return BidResult{Reason: "another bid is as high"}, nil
		}
		a.Best, a.Bidder = b.Amount, b.Bidder
		if end := tx.Now().Add(extension); end.After(a.Closes) {
			a.Closes = end
			closeSale.SetTimer(tx, "close", end) // replaces the timer
		}
		auction.Set(tx, a)
		return BidResult{Leads: true}, nil
	})
	closeSale.Handle(p, func(tx *settle.Tx) error {
		auction.Update(tx, func(a *Auction) { a.Closed = true })
		return nil
	})
	return p
}
