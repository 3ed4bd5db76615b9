package cookbook

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/internal/leaks"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/settletest"
)

func TestMain(m *testing.M) { leaks.VerifyTestMain(m) }

// travel says which program a space runs.
func travel(space string) *settle.Program {
	switch {
	case strings.HasPrefix(space, "flight-"):
		return flight()
	case space == "silent":
		p := settle.NewProgram("silent")
		answered.Handle(p, func(*settle.Tx, Answer) error { return nil })
		return p
	}
	return tripProgram()
}

func TestReserve_ATripHoldsAllItsSeatsOrNone(t *testing.T) {
	t.Parallel()
	w := settletest.New(t, travel)
	full := w.Space("flight-2")
	capacity.Set(full, 1)
	settletest.Call(w.Space("trip-1"), book, []string{"flight-1", "flight-2"})
	settletest.Expect(w.Space("trip-1"), settle.Field[string](trip, "state"), "booked")
	settletest.Call(w.Space("trip-2"), book, []string{"flight-1", "flight-2"})
	settletest.Expect(w.Space("trip-2"), settle.Field[string](trip, "state"), "failed")
	w.Advance(time.Hour) // holds that are confirmed do not expire
	settletest.ExpectKeys(w.Space("flight-1"), holds, "trip-1")
	settletest.ExpectKeys(full, holds, "trip-1")
}

func TestReserve_AHoldThatIsNotConfirmedExpires(t *testing.T) {
	t.Parallel()
	w := settletest.New(t, travel)
	f := w.Space("flight-1")
	settletest.Call(f, reserve, "silent") // never confirms
	settletest.ExpectKeys(f, holds, "silent")
	w.Advance(holdFor)
	settletest.ExpectKeys(f, holds)
}

// A client learns the end of a trip, whose request ends long before, and learns the same when it asks again.
func TestReserve_AClientLearnsTheEnd(t *testing.T) {
	t.Parallel()
	d, err := settle.Start(t.Context(), settle.Config{Programs: travel, Server: embedded.Config{StoreDir: t.TempDir(), Fsync: embedded.FsyncInterval}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Stop(context.WithoutCancel(t.Context())) })
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	to := d.Client().Space("trip-1")
	for range 2 {
		if state, err := bookTrip(ctx, to, settle.ID("request-1"), []string{"flight-1", "flight-2"}); state != "booked" || err != nil {
			t.Errorf("the trip is %q: %v", state, err)
		}
	}
}

func TestTransfer_WhatIsDeclinedComesBack(t *testing.T) {
	t.Parallel()
	w := settletest.New(t, transfers(), settletest.AllowErrors()) // two transfers fail
	ann, bob := w.Space("ann"), w.Space("bob")
	cents.Set(ann, 100)
	settletest.Call(ann, transfer, Transfer{To: "bob", Cents: 30})
	settletest.Expect(ann, cents, 70)
	settletest.Expect(bob, cents, 30)
	closed.Set(bob, true)
	settletest.Call(ann, transfer, Transfer{To: "bob", Cents: 20})
	settletest.Expect(ann, cents, 70)
	settletest.Expect(ann, returned, "the account is closed")
	settletest.Expect(bob, cents, 30)
	if no := settletest.Rejected(ann, transfer, Transfer{To: "bob", Cents: 71}); no.Code != "insufficient-funds" {
		t.Error(no)
	}
	for _, never := range []Transfer{{To: "bob", Cents: -20}, {To: "ann", Cents: 20}} {
		if rc := settletest.Send(ann, transfer, never); rc.Outcome != model.Failed || !strings.Contains(rc.Error, "of more than 0, to another account") {
			t.Errorf("%+v: %s %s", never, rc.Outcome, rc.Error)
		}
	}
	settletest.Expect(ann, cents, 70)
}

func TestAuction_ALateBidExtendsIt(t *testing.T) {
	t.Parallel()
	w := settletest.New(t, auctions())
	lot := w.Space("lot-7")
	end := w.Now().Add(time.Hour)
	settletest.Call(lot, open, end)
	settletest.Call(lot, bid, Bid{"ann", 100})
	w.AdvanceTo(end.Add(-time.Minute))
	settletest.Call(lot, bid, Bid{"bob", 110})
	w.AdvanceTo(end.Add(time.Minute))
	settletest.Expect(lot, settle.Field[bool](auction, "closed"), false)
	w.AdvanceTo(end.Add(extension))
	settletest.Expect(lot, settle.Field[bool](auction, "closed"), true)
	if r := settletest.Call(lot, bid, Bid{"ann", 120}); r.Leads || r.Reason == "" {
		t.Errorf("a bid on a closed auction: %+v", r)
	}
	settletest.Expect(lot, settle.Field[string](auction, "bidder"), "bob")
}

// games says which program a space runs.
func games(space string) *settle.Program {
	if space == "league" {
		return league()
	}
	return player()
}

func TestLeaderboard_AWinRunsOneRow(t *testing.T) {
	t.Parallel()
	w := settletest.New(t, games)
	l := w.Space("league")
	for _, name := range []string{"ann", "bob", "cy"} {
		settletest.Call(l, join, name)
	}
	settletest.Watch(l, top)
	l.Mark()
	settletest.Call(w.Space("bob"), won)
	settletest.Expect(l, top, []Score{{"bob", 3}, {"ann", 0}, {"cy", 0}})
	l.ExpectRuns(scores.Node("bob"), 1)
	l.ExpectRuns(scores.Node("ann"), 0)
}

func TestWebhook_ARepeatedMessageCountsOnce(t *testing.T) {
	t.Parallel()
	d, err := settle.Start(t.Context(), settle.Config{
		Programs: settle.Always(orders()),
		Server:   embedded.Config{StoreDir: t.TempDir(), Fsync: embedded.FsyncInterval},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Stop(t.Context())
	h := webhook(d.Client())
	post := func(body string) int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", "/paid", strings.NewReader(body)).WithContext(t.Context()))
		return w.Code
	}
	for _, want := range []struct {
		body string
		code int
	}{
		{`{"id": "evt:1", "order": "order-17", "cents": 500}`, 204},
		{`{"id": "evt:1", "order": "order-17", "cents": 500}`, 204}, // the same message again
		{`{"id": "evt:2", "order": "order-17", "cents": 0}`, 204},   // a dead letter: repeating it changes nothing
		{`{"id": ""}`, 400},
	} {
		if code := post(want.body); code != want.code {
			t.Errorf("%s: %d, not %d", want.body, code, want.code)
		}
	}
	if cents, err := received.Fetch(t.Context(), d.Client().Space("order-17")); cents != 500 || err != nil {
		t.Errorf("received %d cents: %v", cents, err)
	}
}

func TestReject_ARefusalIsAnAnswerAndWritesNothing(t *testing.T) {
	t.Parallel()
	w := settletest.New(t, accounts())
	ann := w.Space("ann")
	balance.Set(ann, 10)
	if no := settletest.Rejected(ann, withdraw, 20); no.Code != "insufficient-funds" || no.Data.String() != `{"balance":10}` {
		t.Errorf("the rejection is %+v", no)
	}
	settletest.Expect(ann, balance, 10)
	if rc := settletest.Send(ann, withdraw, -1); rc.Outcome != model.Failed {
		t.Errorf("receipt %+v", rc)
	}
	if letters := w.DeadLetters(); len(letters) != 1 {
		t.Errorf("dead letters: %v", letters)
	}
}

func TestMigrate_BothFormsAreReadAndOneIsWritten(t *testing.T) {
	t.Parallel()
	s := settletest.New(t, profiles()).Space("ann")
	s.Set("profile", map[string]string{"name": "Ann Lee"}) // as version 1 wrote it
	settletest.Expect(s, greeting, "Hello Ann")
	settletest.SendID(s, migrate, settle.ID("migrate-2"))
	settletest.SendID(s, migrate, settle.ID("migrate-2")) // it is the same event
	settletest.Expect(s, profile, Profile{First: "Ann", Last: "Lee"})
	settletest.Expect(s, greeting, "Hello Ann")
}

func TestApprove_APersonDecides(t *testing.T) {
	t.Parallel()
	s := settletest.New(t, approvals()).Space("expense-17")
	settletest.Send(s.As("ann"), request, "a chair")
	if rc := settletest.Send(s.As("cy"), expire); rc.Code != "internal-stream" {
		t.Errorf("a client lets it expire: %+v", rc)
	}
	for _, c := range []struct{ by, code string }{{"ann", "not-you"}, {"", "not-you"}, {"bob", ""}, {"cy", "closed"}} {
		if rc := settletest.Send(s.As(c.by), decide, true); rc.Code != c.code {
			t.Errorf("%s: %+v", c.by, rc)
		}
	}
	s.Advance(2 * decideWithin) // the timers are cancelled
	want := Approval{State: "approved", What: "a chair", Asked: "ann", Decided: "bob", Until: approval.Get(s).Until}
	settletest.Expect(s, approval, want)
	if got := settletest.PendingTasks(s, notify); strings.Join(got, " ") != "asked decided" {
		t.Errorf("notifications: %v", got)
	}
}

func TestApprove_ARequestExpires(t *testing.T) {
	t.Parallel()
	s := settletest.New(t, approvals()).Space("expense-17")
	settletest.Send(s, request, "a chair")
	s.Advance(remindAfter - time.Second)
	settletest.Expect(s, settle.Field[bool](approval, "reminded"), false)
	s.Advance(time.Second)
	settletest.Expect(s, settle.Field[bool](approval, "reminded"), true)
	s.World().Crash() // the timers are state of the space
	s.Advance(decideWithin - remindAfter)
	settletest.Expect(s, settle.Field[string](approval, "state"), "expired")
	if rc := settletest.Send(s, decide, true); rc.Code != "closed" {
		t.Errorf("receipt %+v", rc)
	}
	if got := settletest.PendingTasks(s, notify); strings.Join(got, " ") != "asked expired reminder" {
		t.Errorf("notifications: %v", got)
	}
}

// stocks says which program a space runs.
func stocks(space string) *settle.Program {
	switch {
	case space == supplier:
		return supplies()
	case strings.HasPrefix(space, "warehouse-"):
		return warehouse()
	}
	return product()
}

func TestRestock_OneOrderForEachTimeThatItBecomesShort(t *testing.T) {
	t.Parallel()
	w := settletest.New(t, stocks)
	chair, a, b, to := w.Space("chair"), w.Space("warehouse-a"), w.Space("warehouse-b"), w.Space(supplier)
	expect := func(orders int) {
		t.Helper()
		if n := len(orderList.Get(to)); n != orders {
			t.Errorf("%d orders, not %d", n, orders)
		}
	}
	settletest.Send(a, move, Moved{"chair", 6})
	settletest.Send(b, move, Moved{"chair", 6})
	settletest.Send(chair, atLeast, 10)
	expect(0)
	settletest.Send(chair, promise, 3) // 9 are left
	expect(1)
	settletest.Send(b, move, Moved{"chair", -2}) // shorter still
	w.Crash()
	settletest.Send(chair, promise, 1)
	expect(1)
	settletest.Send(a, move, Moved{"chair", 20}) // the delivery
	expect(1)
	settletest.Send(chair, atLeast, 100)
	expect(2)
}
