package settletest_test

import (
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/settletest"
)

// Events are sent in the name of a principal, in a world and in a fleet. Two principals that choose one id have two events.
func TestAs_AHandlerSeesThePrincipal(t *testing.T) {
	p := settle.NewProgram("who")
	who := settle.NewRequest[string, string]("who")
	who.Handle(p, func(tx *settle.Tx, _ string) (string, error) { return tx.Event().By(), nil })

	s := settletest.New(t, p).Space("s")
	for _, principal := range []string{"ann", "bob", ""} {
		if got := settletest.Call(s.As(principal), who, ""); got != principal {
			t.Errorf("%q sends in the name of %q", principal, got)
		}
		rc := settletest.SendID(s.As(principal), who, settle.ID("e1"), "")
		if got, _ := rc.Result.AsString(); got != principal {
			t.Errorf("%q: %+v", principal, rc)
		}
		if again, ok := s.As(principal).Receipt("who", settle.ID("e1")); !ok || again.Event != rc.Event {
			t.Errorf("%q: %+v, want %+v", principal, again, rc)
		}
	}
	settletest.RunFleet(t, p, settletest.FleetOptions{Seeds: 1}, func(f *settletest.Fleet) {
		s := f.Space("s")
		for _, principal := range []string{"ann", "bob", ""} {
			settletest.Post(s.As(principal), who, settle.ID("e1"), "")
			f.Rest()
			rc, ok := s.As(principal).Receipt("who", settle.ID("e1"))
			if got, _ := rc.Result.AsString(); !ok || got != principal {
				t.Errorf("fleet, %q: %+v", principal, rc)
			}
			if got := settletest.Call(s.As(principal), who, ""); got != principal {
				t.Errorf("fleet: %q sends in the name of %q", principal, got)
			}
		}
	})
}
