package bus

import (
	"errors"
	"strconv"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/model"
)

// A bus that does not know the stored state of a revision reads it first: the server compares revisions, not
// states.
func TestSave_AnOlderStateDoesNotReplaceANewerOneOfAnUnknownRevision(t *testing.T) {
	t.Parallel()
	first := embeddedBus(t, Config{})
	newer := []model.StateDoc{{Doc: "doc", Seq: 10, Data: []byte("ten")}}
	if err := first.SaveState(t.Context(), "cart", newer, nil); err != nil {
		t.Fatal(err)
	}
	b := joined(t, Config{Server: first.cfg.Server, Partitions: 1})
	older := []model.StateDoc{{Doc: "doc", Seq: 5, Rev: newer[0].Rev, Data: []byte("five")}}
	if err := b.SaveState(t.Context(), "cart", older, nil); !errors.Is(err, model.ErrOutdated) {
		t.Errorf("got %v", err)
	}
	if st, err := b.LoadState(t.Context(), "cart"); err != nil || string(st.Docs[0].Data) != "ten" {
		t.Errorf("%+v, %v", st.Docs, err)
	}
}

// A bucket that has gone back has smaller revisions. A process that has not detected that does not overwrite
// them: otherwise it would never save again what it saved before.
func TestSave_OverASmallerRevisionTheBucketIsCompared(t *testing.T) {
	t.Parallel()
	for name, refilled := range map[string]int{"that has an older item": 1, "that has none": 0} {
		b := embeddedBus(t, Config{})
		doc := func(seq, rev uint64) []model.StateDoc {
			return []model.StateDoc{{Doc: "doc", Seq: seq, Rev: rev, Data: []byte(strconv.FormatUint(seq, 10))}}
		}
		rev := uint64(0)
		for seq := range uint64(5) {
			docs := doc(seq+1, rev)
			if err := b.SaveState(t.Context(), "cart", docs, nil); err != nil {
				t.Fatal(err)
			}
			rev = docs[0].Rev
		}
		if err := b.streams.JS.DeleteStream(t.Context(), wire.BucketStream(b.streams.Names.StateBucket(0))); err != nil {
			t.Fatal(err)
		}
		other := joined(t, Config{Server: b.cfg.Server, Partitions: 1}) // which creates it again
		for seq := range refilled {
			if err := other.SaveState(t.Context(), "cart", doc(uint64(seq+1), 0), nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.SaveState(t.Context(), "cart", doc(6, rev), nil); !errors.Is(err, model.ErrRewound) {
			t.Errorf("a bucket %s: the save ended with %v", name, err)
		}
		if st, err := other.LoadState(t.Context(), "cart"); err != nil || len(st.Docs) != refilled {
			t.Errorf("a bucket %s has then %+v, %v", name, st.Docs, err)
		}
	}
}

// After a lost answer, the stored item counts as the bus's own only if it is identical.
func TestSave_InDoubtAnotherWritersItemIsRecognized(t *testing.T) {
	t.Parallel()
	b := embeddedBus(t, Config{})
	theirs := []model.StateDoc{{Doc: "doc", Seq: 10, Data: []byte("theirs")}}
	if err := b.SaveState(t.Context(), "cart", theirs, nil); err != nil {
		t.Fatal(err)
	}
	for data, ours := range map[string]bool{"theirs": true, "ours": false} {
		it := item{"cart.doc", &model.StateDoc{Doc: "doc", Seq: 10, Data: []byte(data)}}
		again, err := b.conclude(t.Context(), 0, b.Epoch(), put{it, 0, errMovedInDoubt})
		if again || (err == nil) != ours || !ours && !errors.Is(err, model.ErrOutdated) {
			t.Errorf("%s: again %v, %v", data, again, err)
		}
	}
}

// The next save of an item that was stored or loaded needs no read.
func TestSave_RevisionsThatWereStoredOrLoadedAreKnown(t *testing.T) {
	t.Parallel()
	first := embeddedBus(t, Config{})
	docs := []model.StateDoc{{Doc: "doc", Seq: 10, Data: []byte("1")}}
	if err := first.SaveState(t.Context(), "cart", docs, nil); err != nil {
		t.Fatal(err)
	}
	b := joined(t, Config{Server: first.cfg.Server, Partitions: 1})
	if _, err := b.LoadState(t.Context(), "cart"); err != nil {
		t.Fatal(err)
	}
	for who, b := range map[string]*Bus{"the one that has stored it": first, "the one that has loaded it": b} {
		if seq, known := b.seen.seq("cart.doc", docs[0].Rev); !known || seq != 10 {
			t.Errorf("%s: sequence %d, known %v", who, seq, known)
		}
	}
}

func TestState_OfSeveralMessagesOfASubjectTheLastCounts(t *testing.T) {
	t.Parallel()
	got := wire.Latest([]wire.StoredMsg{{Subject: "a", Seq: 1}, {Subject: "b", Seq: 2}, {Subject: "a", Seq: 3}})
	if len(got) != 2 || got[0].Seq != 3 || got[1].Seq != 2 {
		t.Errorf("%+v", got)
	}
}

// A client can write any header, but only an event that a space has sent can be a tombstone.
func TestLane_OnlyASpaceSendsTombstones(t *testing.T) {
	t.Parallel()
	s := wire.StoredMsg{Subject: "settle.lane.0.cart.add.e1", Header: map[string][]string{wire.HeaderInvalid: {"too large"}}}
	if m, ok := eventOf(s); !ok || m.Invalid != "" {
		t.Errorf("an event of a client: %+v, %v", m, ok)
	}
	wire.SetNumber(s.Header, wire.HeaderPosition, 7)
	if m, ok := eventOf(s); !ok || m.Invalid == "" {
		t.Errorf("an event of a space: %+v, %v", m, ok)
	}
}

// A time that cannot be decoded is not the zero time.
func TestLane_AnInvalidTimeIsReported(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"tomorrow": -1, "-5": -1, "": 0, "0": 0, "1700000000000": 1700000000000, "9223372036854775807": -1} {
		if got := wire.Millis(nats.Header{"x": {text}}, "x"); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

// The lane refuses a second event with the same id, and so does the message itself: the lane's answer alone
// may concern one that is still in flight.
func TestSend_ExpectsNoEarlierEvent(t *testing.T) {
	t.Parallel()
	s := &sending{m: model.Message{Space: "cart", Stream: "add", ID: "e1"}}
	if got := wire.Header(s.message().Header, wire.HeaderExpect); got != "0" {
		t.Errorf("it expects %q", got)
	}
}
