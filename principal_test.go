package settle_test

import (
	"testing"
	"testing/synctest"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/model"
)

// Two principals that choose one id have an event each, and neither takes the other's; what one of them sends again is the same
// event. A handler sees
// the principal, and the receipt names it.
func TestPrincipal_TwoThatChooseOneIDHaveAnEventEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		sees := func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) { return settle.ValueOf(ev.By()) }
		w.start("w1", counter().Handle("who", sees), nil)
		b := w.Server.Connect("people")
		t.Cleanup(b.Close)
		for _, principal := range []string{"", "alice", "bob"} {
			c, err := settle.NewClient(b, settle.ClientConfig{ID: "c", Principal: principal})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Close)
			s := c.Space("s")
			for range 2 {
				rc, err := c.Call(t.Context(), settle.Outgoing{Space: "s", Stream: "who", ID: settle.ID("order-7")})
				if err != nil || rc.Event != model.EventIDOf(principal, "order-7") {
					t.Fatalf("%q: %+v, %v", principal, rc, err)
				}
				if by, _ := rc.Result.AsString(); by != principal {
					t.Errorf("the handler sees %q, want %q", by, principal)
				}
			}
			if rc, err := s.FindReceipt(t.Context(), "who", settle.ID("order-7")); err != nil || rc.Event != model.EventIDOf(principal, "order-7") {
				t.Errorf("%q finds %+v, %v", principal, rc, err)
			}
			tree, err := s.WaitTree(t.Context(), "who", settle.ID("order-7"))
			if err != nil || tree.Root.Event != model.EventIDOf(principal, "order-7") {
				t.Errorf("%q has the tree %+v, %v", principal, tree, err)
			}
			if principal != "" {
				if rc, err := s.FindReceipt(t.Context(), "who", settle.ID(principal+"=order-7")); err != nil || rc.Event != principal+"=order-7" {
					t.Errorf("by its whole id: %+v, %v", rc, err)
				}
			}
		}
		if _, err := settle.NewClient(b, settle.ClientConfig{ID: "c", Principal: "a.b"}); err == nil {
			t.Error("a principal that is no name was accepted")
		}
	})
}
