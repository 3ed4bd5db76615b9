package membus_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/model"
)

// scripted is a network on which everything takes a millisecond, except where a test overrides it.
type scripted struct {
	trip          func(membus.Op, *membus.Trip)
	lost, doubled func(membus.Delivery) bool
}

func (n *scripted) Request(op membus.Op) membus.Trip {
	trip := membus.Trip{There: time.Millisecond, Back: time.Millisecond, Patience: 100 * time.Millisecond}
	if n.trip != nil {
		n.trip(op, &trip)
	}
	return trip
}

func (n *scripted) Delivery(d membus.Delivery) time.Duration {
	if n.lost != nil && n.lost(d) {
		return membus.Lost
	}
	return time.Millisecond
}

func (n *scripted) Doubled(d membus.Delivery) bool { return n.doubled != nil && n.doubled(d) }

func (n *scripted) Waking(membus.Op) time.Duration { return time.Millisecond }
func (n *scripted) Step(membus.Step)               {}

// dialled runs a test with a server and one client over a scripted network.
func dialled(t *testing.T, test func(t *testing.T, s *membus.Server, b *membus.Bus, n *scripted)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, net := membus.NewServer(membus.Config{Partitions: 1}), &scripted{}
		b := server.Dial("a", net)
		defer b.Close()
		test(t, server, b, net)
	})
}

// pass lets virtual time pass: every test here runs in a synctest bubble.
func pass(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	<-t.C
}

// appended starts an append and returns the channel of its result.
func appended(b *membus.Bus, id string, expect uint64) answers {
	got := make(answers, 1)
	b.Append(model.Append{Space: "cart", ID: id, Expect: expect, Data: []byte("data of " + id)}, got.appended)
	return got
}

func wantErr(t *testing.T, got answers, want error) {
	t.Helper()
	if err := <-got; !errors.Is(err, want) {
		t.Errorf("answer: %v, want %v", err, want)
	}
}

// A request that has timed out at the client lands later, after the client has died, and succeeds unless a
// takeover came first.
func TestNetwork_ALateRequestLandsAfterItsClientHasDied(t *testing.T) {
	for name, takeover := range map[string]bool{"without a takeover": false, "after a takeover": true} {
		t.Run(name, func(t *testing.T) {
			dialled(t, func(t *testing.T, s *membus.Server, b *membus.Bus, n *scripted) {
				n.trip = func(op membus.Op, trip *membus.Trip) {
					if trip.There = 10 * time.Second; op.Try > 1 {
						trip.There = membus.Lost
					}
				}
				got := appended(b, "old/0/1", 0)
				pass(time.Second)
				b.Kill()
				wantErr(t, got, model.ErrStopped)
				want := "old/0/1"
				if takeover {
					want = "new/0/1"
					if _, err := s.Append(model.Append{Space: "cart", ID: want}); err != nil {
						t.Fatal(err)
					}
				}
				pass(10 * time.Second)
				if log := s.ReadLog("cart", 0, 10); len(log) != 1 || log[0].ID != want {
					t.Errorf("the log is %v, want %s alone", log, want)
				}
			})
		})
	}
}

func TestNetwork_RequestsOvertakeEachOther(t *testing.T) {
	dialled(t, func(t *testing.T, s *membus.Server, b *membus.Bus, n *scripted) {
		n.trip = func(op membus.Op, trip *membus.Trip) {
			if op.Label == "append" {
				trip.There, trip.Patience = time.Second, time.Minute
			}
		}
		slow := appended(b, "a/0/1", 0)
		if head, err := b.Head(t.Context(), "cart"); head != 0 || err != nil {
			t.Errorf("head %d, %v, while the append is in flight", head, err)
		}
		wantErr(t, slow, nil)
	})
}

// An append is answered with its sequence after a lost acknowledgement, and after a copy that arrives when
// other appends have followed.
func TestNetwork_AnAppendIsRecognizedAmongLaterOnes(t *testing.T) {
	dialled(t, func(t *testing.T, s *membus.Server, b *membus.Bus, n *scripted) {
		n.trip = func(op membus.Op, trip *membus.Trip) {
			if op.Label == "append" && op.Try == 1 {
				trip.Back, trip.Copy = membus.Lost, time.Second
			}
		}
		got := appended(b, "a/0/1", 0)
		pass(10 * time.Millisecond)
		if _, err := s.Append(model.Append{Space: "cart", ID: "b/0/1", Expect: 1}); err != nil {
			t.Fatal(err)
		}
		wantErr(t, got, nil)
		pass(2 * time.Second)
		if log := s.ReadLog("cart", 0, 10); len(log) != 2 {
			t.Errorf("the log has %d entries, want 2", len(log))
		}
	})
}

func TestNetwork_ALaggingReplicaAnswersFromThePast(t *testing.T) {
	dialled(t, func(t *testing.T, s *membus.Server, b *membus.Bus, n *scripted) {
		s.Remember()
		wantErr(t, appended(b, "a/0/1", 0), nil)
		wantErr(t, appended(b, "a/0/2", 1), nil)
		for seq := range uint64(2) {
			if _, err := s.SaveDoc("cart", model.StateDoc{Doc: "d", Data: []byte{'1' + byte(seq)}, Seq: seq + 1}); err != nil {
				t.Fatal(err)
			}
		}
		behind := 0
		n.trip = func(_ membus.Op, trip *membus.Trip) { trip.Behind = behind }
		for behind = range 4 {
			left := uint64(max(0, 2-behind))
			head, _ := b.Head(t.Context(), "cart")
			log, _ := b.ReadLog(t.Context(), "cart", 0, 10)
			st, err := b.LoadState(t.Context(), "cart")
			if head != left || len(log) != int(left) || err != nil {
				t.Errorf("%d behind: head %d and %d entries, want %d", behind, head, len(log), left)
			}
			if saved := len(st.Docs) > 0 && st.Docs[0].Seq == left; saved != (left > 0) {
				t.Errorf("%d behind: the state is %v", behind, st.Docs)
			}
		}
	})
}

// A paused process sends nothing and receives nothing; when it continues, it processes the messages that have
// arrived in the meantime.
func TestNetwork_APausedClientWaits(t *testing.T) {
	dialled(t, func(t *testing.T, s *membus.Server, b *membus.Bus, n *scripted) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		heard := make(chan uint64, 9)
		go func() { _ = b.FollowSpace(ctx, "cart", 0, func(e model.LogEntry) { heard <- e.Seq }) }() // ends with ctx
		sent := appended(b, "a/0/1", 0)
		pass(1500 * time.Microsecond) // the request has arrived
		b.Pause()
		later := appended(b, "a/0/2", 1)
		pass(time.Minute)
		if len(sent)+len(later)+len(heard) > 0 || s.Head("cart") != 1 {
			t.Fatalf("while paused: %d and %d answers, %d entries, head %d", len(sent), len(later), len(heard), s.Head("cart"))
		}
		b.Wake()
		wantErr(t, sent, nil)
		wantErr(t, later, nil)
		if first, second := <-heard, <-heard; first != 1 || second != 2 {
			t.Errorf("heard %d and %d", first, second)
		}
	})
}

func TestNetwork_ACutCanBeOneWay(t *testing.T) {
	dialled(t, func(t *testing.T, s *membus.Server, b *membus.Bus, n *scripted) {
		b.Cut(true, false) // nothing is sent
		mute := appended(b, "a/0/1", 0)
		pass(time.Second)
		if len(mute) > 0 || s.Head("cart") != 0 {
			t.Errorf("outgoing cut: head %d, %d answers", s.Head("cart"), len(mute))
		}
		b.Cut(false, false)
		wantErr(t, mute, nil)
		b.Cut(false, true) // nothing is received
		deaf := appended(b, "a/0/2", 1)
		pass(time.Second)
		if len(deaf) > 0 || s.Head("cart") != 2 {
			t.Errorf("incoming cut: head %d, %d answers", s.Head("cart"), len(deaf))
		}
		b.Cut(false, false)
		wantErr(t, deaf, nil)
		if s.Head("cart") != 2 {
			t.Errorf("head %d, want 2", s.Head("cart"))
		}
	})
}

// first matches the first delivery of a sequence to a client, and no further one.
func first(seq uint64) func(membus.Delivery) bool {
	return func(d membus.Delivery) bool { return d.Seq == seq && d.Try == 0 }
}

// A stored message is delivered once and in order, whichever deliveries are lost or duplicated. The loss of
// the last one is noticed when the idle consumer reports its position.
func TestFollow_LostAndDuplicatedMessagesAreDeliveredOnceInOrder(t *testing.T) {
	for seq := uint64(1); seq <= 3; seq++ {
		for _, twice := range []bool{false, true} {
			dialled(t, func(t *testing.T, s *membus.Server, b *membus.Bus, n *scripted) {
				if n.lost = first(seq); twice {
					n.lost, n.doubled = nil, first(seq)
				}
				for _, id := range []string{"e1", "e2", "e3"} {
					if _, err := s.Send(model.Message{Space: "cart", Stream: "add", ID: id}); err != nil {
						t.Fatal(err)
					}
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				var got []string
				go func() { // ends with ctx
					defer close(done)
					_ = b.FollowLane(ctx, 0, 0, func(m model.Message) { got = append(got, m.ID) }) // ended by ctx
				}()
				pass(time.Second)
				cancel()
				<-done
				want := "[e1 e2 e3]"
				if seq == 3 && !twice {
					want = "[e1 e2]" // so far
				}
				if fmt.Sprint(got) != want {
					t.Errorf("delivery %d is lost, or doubled (%v): %v, want %s", seq, twice, got, want)
				}
			})
		}
	}
	dialled(t, func(t *testing.T, s *membus.Server, b *membus.Bus, n *scripted) {
		n.lost = first(1)
		if _, err := s.Send(model.Message{Space: "cart", Stream: "add", ID: "e1"}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		got := 0
		_ = b.FollowLane(ctx, 0, 0, func(model.Message) { got++ }) // ended by ctx
		if got != 1 {
			t.Errorf("the only event was delivered %d times in ten seconds", got)
		}
	})
}

// A duplicate of a message that no stream stores is delivered again, since nothing identifies it.
func TestFollow_ADuplicatedLeaseIsDeliveredTwice(t *testing.T) {
	dialled(t, func(t *testing.T, s *membus.Server, b *membus.Bus, n *scripted) {
		n.doubled = first(1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		time.AfterFunc(100*time.Millisecond, func() { s.Observe(model.Lease{Space: "cart", Doc: "n", Watcher: "u", TTL: time.Second}) })
		got := 0
		_ = b.FollowLeases(ctx, 0, func(model.Lease) { got++ }) // ended by ctx
		if got != 2 {
			t.Errorf("delivered %d times, want 2", got)
		}
	})
}
