package bus

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/bus/provision"
	"github.com/settlehq/settle/model"
)

// A member that listens but does not answer may hang, or be far away: it does not count as gone.
func TestPing_AMemberThatDoesNotAnswerDoesNotCountAsGone(t *testing.T) {
	t.Parallel()
	b := embeddedBus(t, Config{AckTimeout: 400 * time.Millisecond})
	if _, err := b.streams.NC.Subscribe(b.streams.Names.Ping("w"), func(*nats.Msg) {}); err != nil {
		t.Fatal(err)
	}
	if there, err := b.Ping(t.Context(), "w"); there || err == nil {
		t.Errorf("there: %v, %v; want an error", there, err)
	}
	patient := joined(t, Config{Server: b.cfg.Server, Partitions: 1})
	if there, err := patient.Ping(t.Context(), "nobody"); there || err != nil {
		t.Errorf("without a member: %v, %v", there, err)
	}
}

// A user that may write to the bucket of members can write anything there.
func TestFollowMembers_AnAnnouncementUnderAnotherNameIsSkipped(t *testing.T) {
	t.Parallel()
	b := embeddedBus(t, Config{})
	subject := b.streams.KV + wire.BucketSubject(b.streams.Names.WorkersBucket(), "w2")
	if err := errors.Join(b.store(t.Context(), subject, []byte(`{"id":"w1","beat":7}`)), b.Announce(t.Context(), model.Member{ID: "w3", Beat: 1})); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var ids []string
	_ = b.FollowMembers(ctx, func(m model.Member) { ids = append(ids, m.ID) }, cancel) // until all are delivered
	if !slices.Equal(ids, []string{"w3"}) {
		t.Errorf("delivered are %v, want w3", ids)
	}
}

// A bucket may have more due spaces than the server lists in one answer.
func TestDueSpaces_OfABucketLargerThanOneAnswer(t *testing.T) {
	t.Parallel()
	b := embeddedBus(t, Config{})
	for _, space := range []string{"cart", "shop"} {
		if err := b.SaveState(t.Context(), space, []model.StateDoc{{Doc: model.DueKey, Seq: 3, Data: []byte("100")}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	relayed(t, b, func(_ *nats.Conn, request string, m *nats.Msg) bool {
		if !strings.HasPrefix(request, "DIRECT.GET.") {
			return false
		}
		batchIsOver(m, "413", "Too Many Results")
		return true
	})
	if list, err := b.DueSpaces(t.Context(), 0); err != nil || len(list) != 2 {
		t.Errorf("%v, %v; want two", list, err)
	}
}

// The end of a stream is its last message, whatever its time.
func TestLaneBefore_TheLastMessageCounts(t *testing.T) {
	t.Parallel()
	b := embeddedBus(t, Config{})
	for _, id := range []string{"e1", "e2", "e3"} {
		sent := make(chan error, 1)
		b.Send(model.Message{Space: "cart", Stream: "add", ID: id}, func(_ model.SendResult, err error) { sent <- err })
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
	}
	for at, want := range map[time.Time]uint64{time.Now().Add(time.Hour): 3, time.Now().Add(-time.Hour): 0} {
		if got, err := b.LaneBefore(t.Context(), 0, at); err != nil || got != want {
			t.Errorf("before %v: %d, %v, want %d", at, got, err, want)
		}
	}
}

// A position can be moved back, which saving one cannot do.
func TestMovePosition_MovesInBothDirections(t *testing.T) {
	t.Parallel()
	b := embeddedBus(t, Config{})
	for _, seq := range []uint64{7, 3, 9} {
		if err := b.MovePosition(t.Context(), 0, "lane", seq); err != nil {
			t.Fatal(err)
		}
		if got, err := b.LoadPosition(t.Context(), 0, "lane"); err != nil || got != seq {
			t.Errorf("it is %d, %v, want %d", got, err, seq)
		}
	}
}

// The lane is filled up to a sequence, and the next event gets the next one.
func TestFillLane_FillsUpToASequence(t *testing.T) {
	t.Parallel()
	b := embeddedBus(t, Config{})
	taken := []model.Message{{Space: "cart", Stream: "add", ID: "e1"}}
	if err := b.FillLane(t.Context(), 0, 5, taken); err != nil {
		t.Fatal(err)
	}
	if end, err := b.LaneEnd(t.Context(), 0); err != nil || end != 5 {
		t.Errorf("the lane ends at %d, %v, want 5", end, err)
	}
	sent := make(chan model.SendResult, 1)
	b.Send(taken[0], func(r model.SendResult, _ error) { sent <- r })
	if r := <-sent; !r.Duplicate {
		t.Errorf("the name of an event that was handled is free: %+v", r)
	}
}

// Knowledge of one revision says nothing about another one.
func TestRevisions_OfAnotherRevisionAreUnknown(t *testing.T) {
	t.Parallel()
	var r revisions
	r.note("s.a", 5, 50)
	if _, known := r.seq("s.a", 6); known {
		t.Error("revision 6 is known, and 5 was noted")
	}
}

// An answer without a listener ends.
func TestOutlet_IsGoneWithoutAListener(t *testing.T) {
	t.Parallel()
	b := embeddedBus(t, Config{})
	o := b.newOutlet("nobody.listens.here")
	defer o.Close()
	if err := o.Send(model.Part{Data: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-o.Gone():
	case <-time.After(5 * time.Minute):
		t.Error("it continues without a listener")
	}
}

func TestOpen_WithAnotherNumberOfPartitionsIsRefused(t *testing.T) {
	t.Parallel()
	for configured, refused := range map[int]bool{4: false, 0: false, 3: true, 5: true} {
		b := unconnected(Config{Partitions: configured})
		if err := b.Choose(provision.Settings{Partitions: 4}); (err != nil) != refused {
			t.Errorf("%d configured and 4 stored: %v", configured, err)
		}
	}
}

// Events during a disconnect are missed: any stream may have gone back.
func TestPast_ADisconnectPutsEveryStreamInDoubt(t *testing.T) {
	t.Parallel()
	b := storedLog(t, Config{})
	b.streams.NC.DisconnectErrHandler()(b.streams.NC, errors.New("cut off"))
	if !b.streams.Past.Suspects(pastLog) || !b.streams.Past.HoldsBack("another", true) {
		t.Error("the log is believed to be what it was")
	}
	b.streams.CompareAll() // as with the reconnect
	if err := b.streams.Steady(t.Context(), pastLog, 0); err != nil {
		t.Error(err)
	}
}

// Where a document was stored first is before it, as is its last change; anything else is no statement of Settle.
func TestStateDoc_IsStoredAgainOnlyBehindWhereItWasStoredFirst(t *testing.T) {
	for kept, want := range map[model.Kept]bool{
		{Rev: 40, Seq: 7}: true,
		{Rev: 50, Seq: 7}: false,
		{Rev: 51, Seq: 7}: false,
		{Rev: 40, Seq: 9}: false,
		{Seq: 7}:          false,
	} {
		h := nats.Header{}
		wire.SetNumber(h, wire.HeaderSeq, 9)
		wire.SetNumber(h, wire.HeaderKeptSeq, kept.Seq)
		wire.SetNumber(h, wire.HeaderKeptRev, kept.Rev)
		if d := stateDoc(wire.StoredMsg{Header: h, Seq: 50, Data: []byte("1")}); (d.Kept == kept) != want {
			t.Errorf("%+v is read as %+v", kept, d.Kept)
		}
	}
}
