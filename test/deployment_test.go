package test

import (
	"strconv"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// relay returns a program in which every "depart" counts at its own space and sends an
// "arrive" to the space that the payload names.
func relay() *settle.Program {
	count := func(tx *settle.Tx, doc string) {
		n, _ := tx.Get(doc).AsInt()
		tx.Set(doc, n+1)
	}
	return settle.NewProgram("relay").
		Handle("depart", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
			count(tx, "departed")
			to, _ := ev.Payload.Get("to").AsString()
			tx.Send(to, "arrive", map[string]string{"flight": ev.ID})
			return tx.Get("departed"), nil
		}).
		Handle("arrive", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
			count(tx, "arrived")
			return tx.Get("arrived"), nil
		}).
		Compute("total", func(v *settle.View) (settle.Value, error) {
			d, _ := v.Get("departed").AsInt()
			a, _ := v.Get("arrived").AsInt()
			return settle.ValueOf(d + a)
		})
}

func flight(i int, from, to string) settle.Outgoing {
	return settle.Outgoing{Space: from, Stream: "depart", ID: settle.ID("f" + strconv.Itoa(i)), Payload: map[string]string{"to": to}}
}

// handled is one receipt in the log.
type handled struct {
	space string
	key   receipts.Key
	rc    *model.Receipt
	tx    *model.Tx
}

// entry is a commit and its log sequence.
type entry struct {
	seq uint64
	c   *model.Commit
}

// readCommits returns the commits of a space after a sequence, up to its current head. It repeats the
// request if a replica is behind.
func readCommits(t *testing.T, b *bus.Bus, space string, after uint64) []entry {
	t.Helper()
	ctx := testContext(t)
	head, err := b.Head(ctx, space)
	if err != nil {
		t.Fatal(err)
	}
	var out []entry
	for after < head {
		entries, err := b.ReadLog(ctx, space, after, 256)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			c, err := model.DecodeCommit(e.Data)
			if err != nil {
				t.Fatal(err)
			}
			after = e.Seq
			out = append(out, entry{e.Seq, c})
		}
	}
	return out
}

// readLog returns all receipts of a space in log order.
func readLog(t *testing.T, b *bus.Bus, space string) []handled {
	t.Helper()
	var out []handled
	for _, e := range readCommits(t, b, space, 0) {
		for i := range e.c.Txs {
			tx := &e.c.Txs[i]
			if tx.Receipt == nil {
				continue
			}
			stream, _ := receipts.Stream(tx.By)
			out = append(out, handled{space, receipts.Key{Stream: stream, ID: tx.Receipt.Event}, tx.Receipt, tx})
		}
	}
	return out
}

// eventually waits until a document has the wanted value, by watching it.
func eventually(t *testing.T, c *settle.Client, space, doc string, want int64) {
	t.Helper()
	last := settle.Value{}
	for u, err := range c.Space(space).Watch(testContext(t), doc) {
		if err != nil {
			t.Fatalf("%s/%s is %v, want %d: %v", space, doc, last, want, err)
		}
		last = u.Value
		if n, ok := last.AsInt(); ok && n == want {
			return
		}
	}
	t.Fatalf("%s/%s is %v, want %d", space, doc, last, want)
}

func once(t *testing.T, list []handled) {
	t.Helper()
	seen := map[receipts.Key]bool{}
	for _, h := range list {
		if seen[h.key] {
			t.Errorf("event %v of %s has two receipts", h.key, h.space)
		}
		seen[h.key] = true
		if h.rc.Outcome != model.Handled {
			t.Errorf("event %v of %s: %s (%s)", h.key, h.space, h.rc.Outcome, h.rc.Error)
		}
	}
}
