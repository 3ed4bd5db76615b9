package settle

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/model"
)

// Space is one space as a client sees it: what is sent to it, read from it and watched in it. It is a name
// and a client, costs nothing to create, and may be compared and copied. Client.Space returns one.
//
//	lot := client.Space("lot-7")
//	n, err := bid.Call(ctx, lot, settle.ID("bid-17"), Bid{"ann", 100})
type Space struct {
	client *Client
	name   string
}

// Space returns the space of a name: 1 to 64 letters, digits, '-' and '_'. The name is checked when the
// space is used. A space need not exist: its first event creates it, and a read of one that does not exist finds nothing (see
// Program.MadeByReads).
func (c *Client) Space(name string) Space { return Space{c, name} }

// Name returns the name of the space.
func (s Space) Name() string { return s.name }

// FindReceipt returns the receipt of an event, nil if there is none yet. It does not wait. It reads
// a number of commits logarithmic in the length of the log. The error is history.ErrForgotten if the event
// was handled so long ago that neither lane nor log has its receipt.
func (s Space) FindReceipt(ctx context.Context, stream string, id EventID) (*model.Receipt, error) {
	if err := s.client.deployed(ctx); err != nil {
		return nil, err
	}
	h, err := history.FindReceipt(ctx, s.client.bus, s.name, stream, s.client.event(id))
	if h == nil || err != nil {
		return nil, err
	}
	return h.Tx.Receipt, nil
}

// Receipts iterates over the receipts of the space in the order of the log, oldest first:
//
//	for h, err := range alice.Receipts(ctx, history.ReceiptFilter{Outcome: model.Failed}) {
//
// The iteration ends after the first error.
func (s Space) Receipts(ctx context.Context, f history.ReceiptFilter) iter.Seq2[*history.Handling, error] {
	return func(yield func(*history.Handling, error) bool) {
		if err := s.client.deployed(ctx); err != nil {
			yield(nil, err)
			return
		}
		history.Receipts(ctx, s.client.bus, s.name, f)(yield)
	}
}

// Log returns the newest commits of the space that a query selects, as people read them: what each transaction was made by, and what it
// has changed from which value to which. It needs no worker. The past values of one document are those of a query with its name.
func (s Space) Log(ctx context.Context, q history.LogQuery) (*history.Page, error) {
	if err := s.client.deployed(ctx); err != nil {
		return nil, err
	}
	return history.ReadEntries(ctx, s.client.bus, s.name, q)
}

// FollowLog iterates over the commits that Log returns, and then over each new one, until ctx ends. The iteration ends after the first
// error, such as that of ctx.
func (s Space) FollowLog(ctx context.Context, q history.LogQuery) iter.Seq2[*history.Entry, error] {
	return func(yield func(*history.Entry, error) bool) {
		page, err := s.Log(ctx, q)
		going := true
		each := func(e *history.Entry) bool {
			going = yield(e, nil)
			return going
		}
		if err == nil {
			for _, e := range page.Entries {
				if !each(e) {
					return
				}
			}
			err = page.Follow(ctx, s.client.bus, q, each)
		}
		if err != nil && going {
			yield(nil, err)
		}
	}
}

// Get returns a document as it is in the log, and its revision: the log sequence of the commit that
// last changed it, 0 if none did. The value is absent if the document does not exist. Get needs no worker
// and creates no demand, so a derived document may be out of date: GetCurrent brings it up to date once,
// Watch keeps it up to date.
func (s Space) Get(ctx context.Context, doc string) (Value, uint64, error) {
	if err := s.check(ctx, doc); err != nil {
		return Value{}, 0, err
	}
	d, err := s.client.reads.Read(ctx, s.name, doc)
	if err != nil {
		return Value{}, 0, err
	}
	return d.Value, d.Seq, nil
}

// GetCurrent returns a document as it is at the head of the log, as answered by the worker that
// owns the space. A derived document that is not observed is computed first, for this read only. If
// that fails or takes too long, Update.Current is false, and Update.Reason says why.
//
// During a takeover or a handover of the space GetCurrent blocks, until the deadline of ctx, or for 15
// seconds without one. The error is model.ErrNoResponder if there is no worker.
func (s Space) GetCurrent(ctx context.Context, doc string) (Update[Value], error) {
	if err := s.check(ctx, doc); err != nil {
		return Update[Value]{}, err
	}
	q := live.Get{Space: s.name, Document: doc}
	if deadline, has := ctx.Deadline(); has {
		q.Timeout = live.Duration(min(max(time.Until(deadline), 1), live.MaxTimeout))
	}
	ctx, end := s.client.observed.ask(ctx, "get", s.name, doc)
	a, err := (&live.Client{Bus: s.client.bus, Principal: s.client.by}).Get(ctx, q)
	end(err)
	if err != nil {
		return Update[Value]{}, fmt.Errorf("get document %s of space %s: %w", doc, s.name, err)
	}
	u := Update[Value]{Revision: a.Revision, Exists: a.Found, Changed: true, Connected: true, Current: a.Stale == "", Reason: a.Stale}
	if a.Found {
		u.Value, err = model.ParseValue(a.Value)
	}
	return u, err
}

// check returns an error for names that are not valid, and if there is no deployment.
func (s Space) check(ctx context.Context, doc string) error {
	if err := model.CheckName("space", s.name); err != nil {
		return err
	}
	if err := model.CheckName("document", doc); err != nil {
		return err
	}
	return s.client.deployed(ctx)
}
