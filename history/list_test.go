package history_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/receipts"
)

// listed returns the events whose receipts are found, and the error that ends the list.
func listed(ctx context.Context, bus port.Client, space string, f history.ReceiptFilter, most int) (ids []string, err error) {
	for h, err := range history.Receipts(ctx, bus, space, f) {
		if err != nil {
			return ids, err
		}
		if ids = append(ids, h.Tx.Receipt.Event); len(ids) == most {
			break
		}
	}
	return ids, nil
}

func TestReceipts_AreThoseOfTheLogInItsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := newAuthor(1, "s")
		a.takeOver()
		a.write(t)
		var want []string
		for _, e := range a.server.ReadLog("s", 0, 1<<20) {
			c, err := model.DecodeCommit(e.Data)
			if err != nil {
				t.Fatal(err)
			}
			for i := range c.Txs {
				if rc := c.Txs[i].Receipt; rc != nil {
					want = append(want, rc.Event)
				}
			}
		}
		bus := a.reader(t)
		all, err := listed(t.Context(), bus, "s", history.ReceiptFilter{}, -1)
		if err != nil || !slices.Equal(all, want) {
			t.Fatalf("listed %v, %v; the log has %v", all, err, want)
		}
		n := rapid.IntRange(1, 20).Draw(t, "last")
		last, err := listed(t.Context(), bus, "s", history.ReceiptFilter{Last: n}, -1)
		if err != nil || !slices.Equal(last, want[max(0, len(want)-n):]) {
			t.Fatalf("the last %d: %v, %v; the log has %v", n, last, err, want)
		}
		if len(want) > 0 {
			if one, err := listed(t.Context(), bus, "s", history.ReceiptFilter{}, 1); err != nil || one[0] != want[0] {
				t.Fatalf("the first: %v, %v", one, err)
			}
		}
	})
}

// The newest receipts of a long log are found near its end.
func TestReceipts_TheLastFewAreSearchedFromTheEnd(t *testing.T) {
	a := newAuthor(1, "s")
	a.takeOver()
	for i := range 5000 {
		a.send(fmt.Sprint("e", i), 0)
		a.commit(a.owner, 1, func() bool { return false })
	}
	bus := a.reader(t)
	got, err := listed(t.Context(), bus, "s", history.ReceiptFilter{Last: 3}, -1)
	if err != nil || !slices.Equal(got, []string{"e4997", "e4998", "e4999"}) {
		t.Errorf("%v, %v", got, err)
	}
	if bus.reads > 2 {
		t.Errorf("%d reads for the last three", bus.reads)
	}
}

// end makes a commit that ends an event.
func (a *author) end(stream, id string, o model.Outcome) {
	rc := receipts.Handled(&model.Event{Space: a.space, Stream: stream, ID: id}, model.Value{})
	rc.Outcome = o
	a.owner.n++
	a.append(&model.Commit{Epoch: a.owner.seq, Txs: []model.Tx{{N: a.owner.n, By: receipts.By(stream), Receipt: rc}}, Cursor: a.lane.Cursor(0)})
}

func TestReceipts_FilterAndFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAuthor(1, "s")
		a.takeOver()
		a.end("add", "a1", model.Handled)
		a.end("fail", "f1", model.Failed)
		a.end("nosuch", "n1", model.Refused)
		a.end("fail", "f2", model.Failed)
		bus := a.reader(t)
		for want, f := range map[string]history.ReceiptFilter{
			"a1 f1 n1 f2": {},
			"f1 f2":       {Outcome: model.Failed},
			"f2":          {Outcome: model.Failed, Last: 1},
			"a1":          {Stream: "add"},
			"":            {Stream: "add", Outcome: model.Failed},
		} {
			if got, err := listed(t.Context(), bus, "s", f, -1); err != nil || strings.Join(got, " ") != want {
				t.Errorf("%+v: %v, %v; want %s", f, got, err, want)
			}
		}

		followed := make(chan []string, 1)
		go func() { // ends after three
			got, _ := listed(t.Context(), bus, "s", history.ReceiptFilter{Stream: "fail", Last: 1, Follow: true}, 3)
			followed <- got
		}()
		synctest.Wait()
		a.end("fail", "f3", model.Failed)
		a.end("add", "a2", model.Handled)
		a.end("fail", "f4", model.Failed)
		if got := strings.Join(<-followed, " "); got != "f2 f3 f4" {
			t.Errorf("followed %s", got)
		}

		ctx, cancel := context.WithCancel(t.Context())
		go func() { // ends with the next line
			synctest.Wait()
			cancel()
		}()
		if _, err := listed(ctx, bus, "s", history.ReceiptFilter{Follow: true}, -1); !errors.Is(err, context.Canceled) {
			t.Errorf("following ended with %v", err)
		}
	})
}

func TestReceipts_RefusesInvalidQueries(t *testing.T) {
	bus := newAuthor(1, "s").reader(t)
	for want, f := range map[string]history.ReceiptFilter{"stream": {Stream: "*"}, "outcome": {Outcome: "lost"}, "last": {Last: -1}} {
		if _, err := listed(t.Context(), bus, "s", f, -1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", f, err)
		}
	}
	if _, err := listed(t.Context(), bus, "a.b", history.ReceiptFilter{}, -1); err == nil {
		t.Error("an invalid space")
	}
	if got, err := listed(t.Context(), bus, "empty", history.ReceiptFilter{Last: 5}, -1); len(got) > 0 || err != nil {
		t.Errorf("receipts of a space without a log: %v, %v", got, err)
	}
}
