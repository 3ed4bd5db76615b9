package membus_test

import (
	"errors"
	"testing"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/model"
)

func TestParsePlan_EachRuleAppliesOnceToTheFirstTryItMatches(t *testing.T) {
	plan, err := membus.ParsePlan("append drop-ack, append@cart drop-request\n\n * late")
	if err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		label, space string
		want         membus.Fate
	}{
		{"append", "shop", membus.DropAck},
		{"append", "shop", membus.Late}, // not of cart, so only the last rule is left for it
		{"append", "shop", membus.Deliver},
		{"send", "cart", membus.Deliver},
		{"append", "cart", membus.DropRequest},
		{"append", "cart", membus.Deliver},
	}
	for i, s := range steps {
		if got := plan.Fate(membus.Op{Label: s.label, Space: s.space}); got != s.want {
			t.Errorf("step %d, %s of %s: %v, want %v", i, s.label, s.space, got, s.want)
		}
	}
	if plan.Left() != 0 {
		t.Errorf("%d rules are left", plan.Left())
	}
}

func TestParsePlan_NamesTheRuleThatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"append":                        `fault rule "append": want LABEL[@SPACE] FATE`,
		"append drop-ack, send explode": `fault rule " send explode": unknown fate; one of deliver, drop-request, drop-ack, duplicate, delay, late`,
	} {
		if _, err := membus.ParsePlan(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// answers collects the errors passed to callbacks.
type answers chan error

func (a answers) appended(_ uint64, err error)       { a <- err }
func (a answers) sent(_ model.SendResult, err error) { a <- err }
func inject(t *testing.T, b *membus.Bus, text string) *membus.Plan {
	t.Helper()
	p, err := membus.ParsePlan(text)
	if err != nil {
		t.Fatal(err)
	}
	b.Inject(p.Fate)
	return p
}

func newClient(t *testing.T, s *membus.Server, id string) *membus.Bus {
	b := s.Connect(id)
	t.Cleanup(b.Close)
	return b
}

func TestDelay_RequestAndAnswerWaitForRelease(t *testing.T) {
	server := membus.NewServer(membus.Config{Partitions: 1})
	b := newClient(t, server, "a")
	inject(t, b, "append delay")
	delayed, other := make(answers, 1), make(answers, 1)
	b.Append(model.Append{Space: "cart", ID: "a/0/1"}, delayed.appended)
	b.Append(model.Append{Space: "shop", ID: "a/0/2"}, other.appended) // overtakes the delayed one
	if err := <-other; err != nil {
		t.Fatal(err)
	}
	if head := server.Head("cart"); head != 0 || len(delayed) != 0 {
		t.Fatalf("head %d, %d answers before the release", head, len(delayed))
	}
	b.Release()
	if err := <-delayed; err != nil {
		t.Fatal(err)
	}
	if head := server.Head("cart"); head != 2 {
		t.Fatalf("head %d, want 2", head)
	}
}

func TestDelay_ADelayedRequestEndsWithItsClient(t *testing.T) {
	server := membus.NewServer(membus.Config{Partitions: 1})
	b := newClient(t, server, "a")
	inject(t, b, "append delay")
	delayed, other := make(answers, 2), make(answers, 1)
	b.Append(model.Append{Space: "cart", ID: "a/0/1"}, delayed.appended)
	b.Send(model.Message{Space: "cart", Stream: "add", ID: "e1"}, other.sent)
	if err := <-other; err != nil { // the append has been delayed by now
		t.Fatal(err)
	}
	b.Close()
	b.Release()
	if err := <-delayed; !errors.Is(err, model.ErrStopped) {
		t.Fatalf("append: %v, want ErrStopped", err)
	}
	if len(delayed) != 0 {
		t.Fatal("the append was answered twice")
	}
}

// A request that its client has given up lands after its retry was decided, and must change nothing.
func TestLate_ARequestThatLandsAfterItsRetryChangesNothing(t *testing.T) {
	server := membus.NewServer(membus.Config{Partitions: 1})
	b := newClient(t, server, "a")
	p := inject(t, b, "append late, send late, save late")
	got := make(answers, 2)
	b.Append(model.Append{Space: "cart", ID: "a/0/1", Data: []byte("1")}, got.appended)
	b.Send(model.Message{Space: "cart", Stream: "add", ID: "e1"}, got.sent)
	for range 2 {
		if err := <-got; err != nil {
			t.Fatal(err)
		}
	}
	if err := b.SaveState(t.Context(), "cart", []model.StateDoc{{Doc: "d", Data: []byte("1"), Seq: 1}}, nil); err != nil {
		t.Fatal(err)
	}
	if err := b.SaveState(t.Context(), "cart", []model.StateDoc{{Doc: "d", Data: []byte("2"), Seq: 2}}, nil); err != nil {
		t.Fatal(err)
	}
	if p.Left() != 0 {
		t.Fatalf("%d faults did not happen", p.Left())
	}
	b.Release()
	if head, end := server.Head("cart"), server.LaneEnd(0); head != 1 || end != 1 {
		t.Errorf("head %d and lane end %d, want 1 and 1", head, end)
	}
	if d, _ := server.Saved("cart", "d"); string(d.Data) != "2" {
		t.Errorf("document %s, want 2", d.Data)
	}
}

// The append of an owner is delayed, the owner dies, and the append arrives. It succeeds if no takeover came
// in between; a takeover refuses it.
func TestLate_ARequestOfADeadClientLandsOnlyBeforeATakeover(t *testing.T) {
	for name, takeover := range map[string]bool{"without a takeover": false, "after a takeover": true} {
		t.Run(name, func(t *testing.T) {
			server := membus.NewServer(membus.Config{Partitions: 1})
			old, fresh := newClient(t, server, "old"), newClient(t, server, "fresh")
			old.Inject(func(op membus.Op) membus.Fate {
				if op.Try > 1 {
					go old.Kill()
					return membus.DropRequest
				}
				return membus.Late
			})
			got := make(answers, 1)
			old.Append(model.Append{Space: "cart", ID: "old/0/1"}, got.appended)
			if err := <-got; !errors.Is(err, model.ErrStopped) {
				t.Fatalf("append: %v, want ErrStopped", err)
			}
			want := "old/0/1"
			if takeover {
				want = "fresh/0/1"
				fresh.Append(model.Append{Space: "cart", ID: want}, got.appended)
				if err := <-got; err != nil {
					t.Fatal(err)
				}
			}
			old.Release()
			log := server.ReadLog("cart", 0, 10)
			if len(log) != 1 || log[0].ID != want {
				t.Fatalf("log %v, want %s alone", log, want)
			}
		})
	}
}
