package worker_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// reading is a program that reads a document of a space that no worker serves.
func reading(t *testing.T) *space.Program {
	t.Helper()
	p := book(t)
	err := errors.Join(
		p.Add(space.NodeSpec{ID: "from-elsewhere", Kind: space.Computation, Output: "from-elsewhere", Run: func(tx *space.Tx) (model.Value, error) {
			return tx.GetFrom("elsewhere", "double"), nil
		}}),
		p.Handle("direct", func(tx *space.Tx, _ *model.Event) (model.Value, error) { return tx.GetFrom("elsewhere", "double"), nil }),
		p.Handle("derived", func(tx *space.Tx, _ *model.Event) (model.Value, error) { return tx.Get("from-elsewhere"), nil }),
	)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// If a handler, or a document that it reads, needs a document that cannot be read, its event fails after five
// minutes and later events continue. A query for such a document is answered within its own timeout.
func TestDocumentWait_EventsAndQueriesDoNotWaitForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(reading(t))}, func(b *membus.Bus) port.Bus { return unheardOf{b, "elsewhere"} })
		w.Send("s", "direct", "e1")
		w.Send("s", "add", "e2")
		w.Send("t", "derived", "e1")
		w.Send("t", "add", "e2")
		w.Pass(4*time.Minute + 50*time.Second)
		for _, name := range []string{"s", "t"} {
			if ends := w.Ends(name); len(ends) != 0 {
				t.Errorf("%s: %v, before five minutes are over", name, ends)
			}
		}
		w.Pass(20 * time.Second)
		for _, name := range []string{"s", "t"} {
			if ends := w.Ends(name); !slices.Equal(ends, []string{"e1 failed 0", "e2 handled 0"}) {
				t.Errorf("%s: %v", name, ends)
			} else if said := w.Receipts(name)[0].Error; !strings.HasPrefix(said, "document @elsewhere/double has not arrived within 5m0s") {
				t.Errorf("%s: the receipt has %q", name, said)
			}
		}
		began := time.Now()
		a, err := p.readCurrent(t.Context(), "t", "from-elsewhere", 20*time.Second)
		if took := time.Since(began); err != nil || !strings.Contains(a.Stale, "elsewhere") || took != 20*time.Second {
			t.Errorf("the query was answered after %s: %+v, %v", took, a, err)
		}
		p.Crash()
	})
}

// The wait can be unlimited.
func TestDocumentWait_CanBeUnlimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(reading(t)), Options: worker.Options{DocumentWait: -1}}, func(b *membus.Bus) port.Bus { return unheardOf{b, "elsewhere"} })
		w.Send("s", "direct", "e1")
		w.Pass(time.Hour)
		if ends := fmt.Sprint(w.Ends("s")); ends != "[]" {
			t.Errorf("the outcomes are %s", ends)
		}
		p.Crash()
	})
}
