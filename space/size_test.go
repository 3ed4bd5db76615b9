package space

import (
	"strings"
	"testing"

	"github.com/settlehq/settle/model"
)

// Small writes add up: a handling that would make a document too large for one message fails, and nothing
// else does.
func TestADocumentNeverOutgrowsAMessage(t *testing.T) {
	p := newProgram(t).handle("add", func(tx *Tx, ev *model.Event) any {
		tx.Set("log", strings.Repeat("x", 1000), ev.ID)
		return nil
	})
	w := newWorld(t)
	h := w.owner("w1", p.Program, func(c *Config) { c.MaxCommitBytes = 32 << 10 })
	for i := range 60 {
		w.send(home, "add", "e"+string(rune('a'+i%26))+string(rune('a'+i/26)), nil)
	}
	h.run()
	st := h.core.Stats()
	if st.Handled == 0 || st.Failed == 0 || st.Handled+st.Failed != 60 {
		t.Fatalf("%d handled and %d failed of 60, want some of each", st.Handled, st.Failed)
	}
	if n, limit := len(h.core.Value("log").AppendJSON(nil)), 32<<10; n > limit {
		t.Errorf("the document has %d bytes, a message takes %d", n, limit)
	}
	if n := h.core.Value("log").Len(); n != int(st.Handled) {
		t.Errorf("%d members of %d handled events", n, st.Handled)
	}
}

// The event that a handler sees is a copy.
func TestAHandlerCannotChangeTheLanesEvent(t *testing.T) {
	p := newProgram(t).handle("add", func(_ *Tx, ev *model.Event) any {
		ev.ID, ev.Lane, ev.Stream = "another", 0, "other"
		return nil
	})
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	w.send(home, "add", "e1", nil)
	h.run()
	for _, e := range w.logs[home] {
		for _, tx := range w.commit(e).Txs {
			if tx.Receipt != nil && (tx.Receipt.Event != "e1" || tx.Receipt.Lane == 0 || tx.By != "handle add") {
				t.Errorf("the receipt says %+v by %s", tx.Receipt, tx.By)
			}
		}
	}
}
