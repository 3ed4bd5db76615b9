package bus

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle/bus/internal/bustest"
	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/model"
)

// relayed returns a bus whose requests to the JetStream API pass through a relay (see bustest.Relay).
func relayed(t *testing.T, b *Bus, answer func(nc *nats.Conn, request string, m *nats.Msg) (answered bool)) {
	t.Helper()
	b.streams.API = bustest.Relay(t, b.cfg.Server, answer)
	var err error
	if b.streams.JS, err = jetstream.NewWithAPIPrefix(b.streams.NC, b.streams.API); err != nil {
		t.Fatal(err)
	}
}

func isInfo(request string) bool { return strings.HasPrefix(request, "STREAM.INFO.") }

// batchIsOver ends a batch without results.
func batchIsOver(m *nats.Msg, status, why string) {
	_ = m.RespondMsg(&nats.Msg{Header: nats.Header{wire.HeaderStatus: {status}, wire.HeaderDescription: {why}}}) // fails only at the end of the test
}

// A lagging replica shows a state from before parts of the log were purged.
func TestState_OfALaggingReplicaIsRejected(t *testing.T) {
	t.Parallel()
	b := embeddedBus(t, Config{})
	docs, mark := []model.StateDoc{{Doc: "doc", Seq: 3, Data: []byte("1")}}, model.StateDoc{Seq: 3, Data: []byte("{}")}
	if err := b.SaveState(t.Context(), "cart", docs, &mark); err != nil {
		t.Fatal(err)
	}
	b.streams.Clustered.Store(true)
	stale := true
	relayed(t, b, func(_ *nats.Conn, request string, m *nats.Msg) bool {
		if !strings.HasPrefix(request, "DIRECT.GET.") || !stale {
			return false
		}
		stale = false
		batchIsOver(m, "404", wire.NoResults)
		return true
	})
	st, err := b.LoadState(t.Context(), "cart")
	if err != nil || len(st.Docs) != 1 || st.Mark.Seq != 3 {
		t.Errorf("%+v, %v", st, err)
	}
}

// A message that is stored while a bucket is scanned may be missing from the scan.
func TestState_AScanThatMissesAnItemIsRepeated(t *testing.T) {
	t.Parallel()
	b := embeddedBus(t, Config{})
	save := func(b *Bus, doc string) {
		if err := b.SaveState(context.Background(), "cart", []model.StateDoc{{Doc: doc, Seq: 3, Data: []byte("1")}}, nil); err != nil {
			t.Error(err)
		}
	}
	save(b, "first")
	other, looks := joined(t, Config{Server: b.cfg.Server, Partitions: 1}), 0
	relayed(t, b, func(_ *nats.Conn, request string, m *nats.Msg) bool {
		switch {
		case strings.HasPrefix(request, "DIRECT.GET."):
			batchIsOver(m, "413", "Too Many Results")
			return true
		case isInfo(request) && strings.Contains(string(m.Data), "subjects_filter"):
			if looks++; looks == 1 {
				save(other, "second")
			}
		}
		return false
	})
	st, err := b.LoadState(t.Context(), "cart")
	if err != nil || len(st.Docs) != 2 || looks < 2 {
		t.Errorf("%d documents after %d looks, %v", len(st.Docs), looks, err)
	}
}

// Between the check of a marker and its purge the document may be stored again.
func TestPurgeState_KeepsADocumentStoredInBetween(t *testing.T) {
	t.Parallel()
	b := embeddedBus(t, Config{})
	docs := []model.StateDoc{{Doc: "doc", Seq: 3}}
	if err := b.SaveState(t.Context(), "cart", docs, nil); err != nil {
		t.Fatal(err)
	}
	other := joined(t, Config{Server: b.cfg.Server, Partitions: 1})
	relayed(t, b, func(_ *nats.Conn, request string, _ *nats.Msg) bool {
		if strings.HasPrefix(request, "STREAM.PURGE.") {
			again := []model.StateDoc{{Doc: "doc", Seq: 4, Rev: docs[0].Rev, Data: []byte("again")}}
			if err := other.SaveState(context.Background(), "cart", again, nil); err != nil {
				t.Error(err)
			}
		}
		return false
	})
	if err := b.PurgeState(t.Context(), "cart", docs); err != nil {
		t.Fatal(err)
	}
	if st, err := other.LoadState(t.Context(), "cart"); err != nil || len(st.Docs) != 1 || string(st.Docs[0].Data) != "again" {
		t.Errorf("%+v, %v", st.Docs, err)
	}
}

// The clocks of servers and clients differ; times in streams are those of the server.
func TestLogState_AgeIsJudgedByTheServersClock(t *testing.T) {
	t.Parallel()
	b := storedLog(t, Config{})
	relayed(t, b, func(nc *nats.Conn, request string, m *nats.Msg) bool {
		if !isInfo(request) {
			return false
		}
		return bustest.Amend(nc, request, m, func(a *server.JSApiStreamInfoResponse) { a.TimeStamp = a.TimeStamp.Add(time.Hour) })
	})
	if st, err := b.LogState(t.Context(), 0, time.Minute); err != nil || st.Old != 3 {
		t.Errorf("commits are old up to %d, want 3 (%v)", st.Old, err)
	}
	if st, err := b.LogState(t.Context(), 0, 2*time.Hour); err != nil || st.Old != 0 {
		t.Errorf("commits are old up to %d, want none (%v)", st.Old, err)
	}
}

// Two of five events are old: these are removed, even if more of the lane is done.
func TestPurgeLane_RemovesOnlyOldEvents(t *testing.T) {
	t.Parallel()
	b := embeddedBus(t, Config{})
	for _, id := range []string{"e1", "e2", "e3", "e4", "e5"} {
		sent := make(chan error, 1)
		b.Send(model.Message{Space: "cart", Stream: "add", ID: id}, func(_ model.SendResult, err error) { sent <- err })
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
	}
	relayed(t, b, func(nc *nats.Conn, request string, m *nats.Msg) bool {
		switch {
		case isInfo(request):
			return bustest.Amend(nc, request, m, func(a *server.JSApiStreamInfoResponse) { a.State.FirstTime = a.State.FirstTime.Add(-time.Hour) })
		case strings.HasPrefix(request, "STREAM.MSG.GET."):
			return bustest.Amend(nc, request, m, func(a *server.JSApiMsgGetResponse) {
				if a.Message.Sequence <= 2 {
					a.Message.Time = a.Message.Time.Add(-time.Hour)
				}
			})
		}
		return false
	})
	if _, err := b.PurgeLane(t.Context(), 0, 4, 30*time.Minute); err != nil {
		t.Fatal(err)
	}
	events, err := b.ReadLane(t.Context(), "cart", 0, 10)
	if err != nil || len(events) != 3 || events[0].ID != "e3" {
		t.Errorf("%d events are left, want three: %+v, %v", len(events), events, err)
	}
}

// A deposed leader that does not know that yet shows an older state: it is asked again.
func TestPast_InAClusterOneReadIsNotEnough(t *testing.T) {
	t.Parallel()
	b := storedLog(t, Config{})
	b.streams.Clustered.Store(true)
	b.streams.Past.Note(pastLog, wire.Anchor{Seq: 4})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	looks := 0
	relayed(t, b, func(nc *nats.Conn, request string, m *nats.Msg) bool {
		if !isInfo(request) {
			return false
		}
		if looks++; looks == 2 { // it has looked again
			cancel()
		}
		return bustest.Amend(nc, request, m, func(a *server.JSApiStreamInfoResponse) { a.Cluster = &server.ClusterInfo{Name: "three"} })
	})
	if b.streams.Compare(ctx, pastLog); b.Epoch() != 0 {
		t.Error("the first answer was believed")
	}
}

// A newly elected leader of a cluster may not know a stream yet, and a stream without an elected leader does
// not answer: neither is a loss. A stream is lost if it is reported missing for longer than such a leader
// would report it.
func TestPast_InAClusterAStreamIsNotLostForLackOfALeader(t *testing.T) {
	t.Parallel()
	const gone, silent, leaderless, there = "gone", "silent", "leaderless", "there"
	const short = 100 * time.Millisecond // less than an answer is waited for
	for name, c := range map[string]struct {
		limit   time.Duration
		answers []string // the last one from then on
		lost    bool
	}{
		"a leader that knows nothing yet":       {time.Hour, []string{gone, gone, there}, false},
		"no leader, for long":                   {short, []string{gone, silent, gone, leaderless, silent, there}, false},
		"it is gone":                            {short, []string{gone}, true},
		"it is gone, and has had no leader yet": {short, []string{leaderless, silent, gone}, true},
	} {
		b := storedLog(t, Config{AckTimeout: 200 * time.Millisecond})
		b.streams.Clustered.Store(true)
		b.streams.Timing.PastLimit = c.limit
		answers := c.answers
		var gones atomic.Int64 // the bus continues to ask after the comparison
		relayed(t, b, func(_ *nats.Conn, request string, m *nats.Msg) bool {
			if !strings.HasPrefix(request, "STREAM.MSG.GET.") {
				return false
			}
			answer := answers[0]
			if len(answers) > 1 {
				answers = answers[1:]
			}
			switch answer {
			case gone:
				gones.Add(1)
				_ = m.Respond([]byte(`{"error":{"code":404,"err_code":10059,"description":"stream not found"}}`))
			case leaderless:
				_ = m.Respond([]byte(`{"error":{"code":503,"err_code":10008,"description":"JetStream system temporarily unavailable"}}`))
			case there:
				return false
			}
			return true
		})
		b.streams.Compare(t.Context(), pastLog)
		if lost := b.Epoch() == 1; lost != c.lost {
			t.Errorf("%s: it counts as lost: %v", name, lost)
		}
		if c.lost && gones.Load() < 2 {
			t.Errorf("%s: the first answer was believed", name)
		}
	}
}

// The connection is lost and restored between a request and its answer: the answer is from before, and the
// stream may have gone back since.
func TestPast_AnAnswerFromBeforeADisconnectSettlesNothing(t *testing.T) {
	t.Parallel()
	b := storedLog(t, Config{})
	asked := 0 // by the one comparison
	relayed(t, b, func(nc *nats.Conn, request string, m *nats.Msg) bool {
		if !strings.HasPrefix(request, "STREAM.MSG.GET.") {
			return false
		}
		if asked++; asked > 1 {
			return false
		}
		return bustest.Amend(nc, request, m, func(*server.JSApiMsgGetResponse) { b.streams.Past.SuspectAll() })
	})
	b.streams.Past.SuspectAll()
	b.streams.Compare(t.Context(), pastLog)
	if asked != 2 || b.streams.Past.Suspects(pastLog) {
		t.Errorf("%d requests for the stream; suspect: %v", asked, b.streams.Past.Suspects(pastLog))
	}
}

// A stream has gone back, but has grown to its former length when it is asked for its end: it must not count
// as having purged what it lacked a moment before.
func TestPast_AStreamThatGrowsWhileItIsComparedHasGoneBack(t *testing.T) {
	t.Parallel()
	b := joined(t, Config{Server: storedLog(t, Config{}).cfg.Server, Partitions: 1})
	b.streams.Past.Note(pastLog, wire.Anchor{Seq: 3, Commit: "a/0/9"}) // a/0/3 has the sequence now
	asked := 0
	relayed(t, b, func(_ *nats.Conn, request string, m *nats.Msg) bool {
		if !strings.HasPrefix(request, "STREAM.MSG.GET.") {
			return false
		}
		if asked++; asked > 1 {
			return false
		}
		_ = m.Respond([]byte(`{"error":{"code":404,"err_code":10037,"description":"no message found"}}`))
		return true
	})
	b.streams.Compare(t.Context(), pastLog)
	if b.Epoch() != 1 {
		t.Errorf("the epoch is %d: the message counts as purged", b.Epoch())
	}
}
