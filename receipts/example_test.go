package receipts_test

import (
	"errors"
	"fmt"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

var payment = model.Event{Space: "alice", Stream: "pay", ID: "invoice-7", Lane: 12}

// Receipts used directly: a handling is a transaction with its receipt and its writes in one commit. A
// receipt in the log proves that the event has taken effect, and contains its outcome; a worker that is about
// to handle the event again finds the receipt first.
func Example() {
	tx := model.Tx{
		N: 1, By: receipts.By(payment.Stream),
		Writes:  []model.Write{{Doc: "balance", Value: model.Int(95)}},
		Receipt: receipts.Handled(&payment, model.Int(95)),
	}
	commit := &model.Commit{Version: model.CommitVersion, Space: "alice", Runtime: "me", Epoch: 3, Attempt: 1, Cursor: model.Cursor{Floor: 12}}
	data := model.AppendCommit(nil, commit, model.AppendTx(nil, &tx))
	fmt.Println(string(data))

	read, err := model.DecodeCommit(data)
	if err != nil {
		panic(err)
	}
	found := receipts.Find(read, receipts.Key{Stream: "pay", ID: "invoice-7"})
	fmt.Println(found.Receipt.Outcome, found.Receipt.Result)
	// Output:
	// {"v":1,"sp":"alice","rt":"me","ep":3,"at":1,"tx":[{"n":1,"by":"handle pay","w":[["balance","",95]],"rc":{"ev":"invoice-7","ln":12,"o":"handled","r":95}}],"cur":{"f":12}}
	// handled 95
}

// A handler declines an event; the caller gets the rejection back out of the receipt.
func ExampleReject() {
	var no *receipts.Rejection
	if err := receipts.Reject("limit", "at most 100 a day", 100); errors.As(err, &no) {
		rc := receipts.Rejected(&payment, no)
		fmt.Println(rc.Outcome, rc.Code, rc.Result)
		fmt.Println(receipts.Reason(rc))
		fmt.Println(receipts.RejectionOf(rc).Code)
	}
	// Output:
	// rejected limit 100
	// limit: at most 100 a day
	// limit
}

func ExampleHandled() {
	rc := receipts.Handled(&payment, model.String("thanks"))
	fmt.Println(rc.Event, rc.Lane, rc.Outcome, rc.Result)
	// Output: invoice-7 12 handled "thanks"
}

func ExampleFailed() {
	rc := receipts.Failed(&payment, errors.New("the account is closed"))
	fmt.Println(rc.Outcome, rc.Error, rc.Result.IsAbsent())
	// Output: failed the account is closed true
}

func ExampleRefused() {
	rc := receipts.Refused(&payment, "there is no handler for stream pay")
	fmt.Println(rc.Outcome, rc.Error)
	// Output: refused there is no handler for stream pay
}

func ExampleCancelled() {
	rc := receipts.Cancelled(&payment, "it was paid in cash")
	fmt.Println(rc.Outcome, rc.Error)
	// Output: cancelled it was paid in cash
}

func ExampleExpired() {
	late := payment
	late.Expires = 1_800_000_000_000
	rc := receipts.Expired(&late)
	fmt.Println(rc.Outcome, rc.Error)
	// Output: expired it was not to be handled after 2027-01-15T08:00:00Z
}

// The same id under another stream is another event.
func ExampleFind() {
	c := &model.Commit{Txs: []model.Tx{{By: receipts.By("pay"), Receipt: receipts.Handled(&payment, model.Value{})}}}
	fmt.Println(receipts.Find(c, receipts.Key{Stream: "pay", ID: "invoice-7"}) != nil)
	fmt.Println(receipts.Find(c, receipts.Key{Stream: "refund", ID: "invoice-7"}) != nil)
	// Output:
	// true
	// false
}

func ExampleBy() {
	fmt.Println(receipts.By("pay"))
	// Output: handle pay
}

func ExampleLaterBy() {
	fmt.Println(receipts.LaterBy("pay"))
	// Output: later pay
}

func ExampleStream() {
	fmt.Println(receipts.Stream("handle pay"))
	_, handling := receipts.Stream("compute total")
	fmt.Println(handling)
	// Output:
	// pay true
	// false
}

// The origin of an event has lost the commit that sent it, and has sent it again under another id: it gets
// the same result as before.
func ExampleRepeated() {
	again := model.Event{Space: "alice", Stream: "pay", ID: "shop:9:2:0", Lane: 31, Position: 7}
	again.Earlier = &model.Receipt{Event: "shop:4:2:0", Outcome: model.Handled, Result: model.Int(95)}
	rc := receipts.Repeated(&again)
	fmt.Println(rc.Event, rc.Lane, rc.Outcome, rc.Result)
	// Output: shop:9:2:0 31 handled 95
}
