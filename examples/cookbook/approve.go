package cookbook

import (
	"time"

	"github.com/settlehq/settle"
)

// Approval is the state of a request that a person has to decide about. Each request is a space.
type Approval struct {
	State    string    `json:"state"` // "open", "approved", "declined" or "expired"
	What     string    `json:"what"`
	Asked    string    `json:"asked"` // the principal that has asked, and below the one that has decided
	Decided  string    `json:"decided,omitzero"`
	Until    time.Time `json:"until"`
	Reminded bool      `json:"reminded,omitzero"`
}

var (
	approval = settle.NewCell[Approval]("approval")
	request  = settle.NewStream[string]("request")
	decide   = settle.NewRequest[bool, Approval]("decide")
	remind   = settle.NewTrigger("remind").Internal() // of timers: no client makes a request expire
	expire   = settle.NewTrigger("expire").Internal()
	notify   = settle.NewAction[string, struct{}]("notify") // tells people about the request
)

const (
	decideWithin = 24 * time.Hour
	remindAfter  = 8 * time.Hour
)

func approvals() *settle.Program {
	p := settle.NewProgram("approvals")
	request.Handle(p, func(tx *settle.Tx, what string) error {
		if approval.Exists(tx) {
			return settle.Reject("exists", "this request was made before", nil)
		}
		until := tx.Now().Add(decideWithin)
		approval.Set(tx, Approval{State: "open", What: what, Asked: tx.Event().By(), Until: until})
		remind.SetTimer(tx, "remind", tx.Now().Add(remindAfter))
		expire.SetTimer(tx, "expire", until)
		notify.Start(tx, "asked", what)
		return nil
	})
	decide.Handle(p, func(tx *settle.Tx, yes bool) (Approval, error) {
		a, by := approval.Get(tx), tx.Event().By()
		switch {
		case a.State == "open" && !tx.Now().Before(a.Until): // its timer waits behind this event
			return a, settle.Reject("closed", "the request has expired", nil)
		case a.State != "open":
			return a, settle.Reject("closed", "the request is not open", a)
		case by == "" || by == a.Asked:
			return a, settle.Reject("not-you", "another person has to decide", nil)
		}
		a.State, a.Decided = "declined", by
		if yes {
			a.State = "approved"
		}
		approval.Set(tx, a)
		tx.CancelTimer("remind")
		tx.CancelTimer("expire")
		notify.Start(tx, "decided", a.State)
		return a, nil
	})
	remind.Handle(p, func(tx *settle.Tx) error {
		approval.Update(tx, func(a *Approval) { a.Reminded = true })
		notify.Start(tx, "reminder", approval.Get(tx).What)
		return nil
	})
	expire.Handle(p, func(tx *settle.Tx) error {
		approval.Update(tx, func(a *Approval) { a.State = "expired" })
		notify.Start(tx, "expired", approval.Get(tx).What)
		return nil
	})
	notify.External(p)
	return p
}
