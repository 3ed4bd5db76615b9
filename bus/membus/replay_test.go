package membus_test

import (
	"errors"
	"testing"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/model"
)

// bus/buscontract checks this in more depth, for both buses, with all kinds of faults. These two tests are
// its plain form.

// appendTo starts an append, and returns a function that waits for its answer.
func appendTo(b *membus.Bus, id string, expect uint64) (wait func() (uint64, error)) {
	type answer struct {
		seq uint64
		err error
	}
	answered := make(chan answer, 1)
	b.Append(model.Append{Space: "cart", ID: id, Expect: expect, Data: []byte("data of " + id)}, func(seq uint64, err error) {
		answered <- answer{seq, err}
	})
	return func() (uint64, error) {
		a := <-answered
		return a.seq, a.err
	}
}

func wantLog(t *testing.T, b *membus.Bus, ids ...string) {
	t.Helper()
	log, err := b.ReadLog(t.Context(), "cart", 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range log {
		got = append(got, e.ID)
	}
	if len(got) != len(ids) {
		t.Fatalf("the log has %v, want %v", got, ids)
	}
	for i := range ids {
		if got[i] != ids[i] {
			t.Fatalf("the log has %v, want %v", got, ids)
		}
	}
}

// A runtime that missed the answer appends its commit again. The commit is recognized and answered with its
// sequence, even if others have followed it. Another commit after the same sequence is refused.
func TestQ17_TheSameAppendAgainIsAnsweredWithItsSequence(t *testing.T) {
	server := membus.NewServer(membus.Config{Partitions: 1})
	a, b := server.Connect("a"), server.Connect("b")
	defer a.Close()
	defer b.Close()
	first, err := appendTo(a, "a/1/1", 0)()
	if err != nil {
		t.Fatal(err)
	}
	again := func() {
		t.Helper()
		if seq, err := appendTo(a, "a/1/1", 0)(); seq != first || err != nil {
			t.Errorf("again: %d, %v, want %d", seq, err, first)
		}
	}
	again()
	if _, err := appendTo(b, "b/1/1", first)(); err != nil {
		t.Fatal(err)
	}
	again()
	for id, expect := range map[string]uint64{"a/1/2": 0, "b/9/9": 0, "a/1/3": first, "a/1/1": first} {
		if seq, err := appendTo(a, id, expect)(); !errors.Is(err, model.ErrRefused) {
			t.Errorf("%s after %d: %d, %v, want ErrRefused", id, expect, seq, err)
		}
	}
	wantLog(t, a, "a/1/1", "b/1/1")
}

// The connection is lost with an append in flight. If the append has been stored, or is stored by the retry,
// its sequence is the answer; if another commit came first, it is refused.
func TestW08_AnAppendInFlightIsAnsweredAfterReconnecting(t *testing.T) {
	server := membus.NewServer(membus.Config{Partitions: 1})
	a := server.Connect("a")
	defer a.Close()
	head := uint64(0)
	for _, c := range []struct {
		id, fault  string
		competitor bool
	}{
		{"a/1/1", "append drop-request", false},
		{"a/1/2", "append drop-ack", false},
		{"a/1/3", "append drop-request", true},
		{"a/1/4", "append deliver", false},
	} {
		inject(t, a, c.fault)
		server.Disconnect()
		wait := appendTo(a, c.id, head)
		if c.competitor {
			seq, err := server.Append(model.Append{Space: "cart", ID: "b/1/1", Expect: head})
			if err != nil {
				t.Fatal(err)
			}
			head = seq
		}
		server.Reconnect()
		seq, err := wait()
		switch {
		case c.competitor && !errors.Is(err, model.ErrRefused):
			t.Errorf("%s: %d, %v, want ErrRefused", c.id, seq, err)
		case !c.competitor && (err != nil || seq <= head):
			t.Errorf("%s: %d, %v", c.id, seq, err)
		case !c.competitor:
			head = seq
		}
	}
	wantLog(t, a, "a/1/1", "a/1/2", "b/1/1", "a/1/4")
}
