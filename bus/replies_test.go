package bus

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/model"
)

// The sender of a request chooses where its answer goes, and the answer has the permissions of the service:
// it must purge no log, and be stored in no stream.
func TestAnswer_OfNoProcessOfOursLandsInAStream(t *testing.T) {
	t.Parallel()
	b := embeddedBus(t, Config{})
	mustAppend(t, b, "cart")
	err := b.Serve(t.Context(), model.Service{Name: "settle-test", Endpoints: []model.Endpoint{
		{Name: "answer", Answer: func(q []byte) ([]byte, error) {
			if len(q) == 0 {
				return nil, &model.ServiceError{Code: model.CodeBadRequest, Text: "empty"}
			}
			return q, nil
		}},
		{Name: "open", Open: func(q []byte, to model.Outlet) {
			_ = to.Send(model.Part{Data: q}) // for a request that is not answered
			to.Close()
		}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.AnswerPings(t.Context(), "w1"); err != nil {
		t.Fatal(err)
	}
	before := stored(t, b)
	lane := b.streams.Names.Event(0, &model.Message{Space: "cart", Stream: "add", ID: "e"})
	questions := []string{b.streams.Names.Endpoint("answer"), b.streams.Names.Endpoint("open"), b.streams.Names.Ping("w1")}
	for _, reply := range []string{
		"$JS.API.STREAM.PURGE." + b.streams.Names.LogStream(0), "$JS.API.STREAM.DELETE." + b.streams.Names.LogStream(0),
		lane, b.streams.Names.Log(0, "cart"), wire.BucketSubject(b.streams.Names.ProgramsBucket(), "rule.space.cart"),
		wire.BucketSubject(b.streams.Names.StateBucket(0), "x"), wire.BucketSubject(b.streams.Names.WorkersBucket(), "w1"),
	} {
		for _, question := range questions {
			for _, data := range []string{"", "x"} {
				if err := b.streams.NC.PublishRequest(question, reply, []byte(data)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for range 2 { // an answer would arrive before these, and a request to the server before a later one
		if _, err := b.Ask(t.Context(), "answer", []byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Ask(t.Context(), "open", []byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Ping(t.Context(), "w1"); err != nil {
			t.Fatal(err)
		}
	}
	if after := stored(t, b); after != before {
		t.Errorf("the streams hold %v, they held %v", after, before)
	}
}

func mustAppend(t *testing.T, b *Bus, space string) {
	t.Helper()
	if _, err := appendTo(b, model.Append{Space: space, ID: "c", Data: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
}

// deliversTo returns the subject to which a consumer delivers, "" if a request creates none.
func deliversTo(request []byte) string {
	var c struct {
		Config struct {
			To string `json:"deliver_subject"`
		} `json:"config"`
	}
	_ = json.Unmarshal(request, &c) // any other request has none
	return c.Config.To
}

// stored is the number of messages and the last sequence of all streams together.
func stored(t *testing.T, b *Bus) (sum [2]uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for info := range b.streams.JS.ListStreams(ctx).Info() {
		sum[0] += info.State.Msgs
		sum[1] += info.State.LastSeq
	}
	return sum
}

// A consumer's heartbeat names a subject to which its reader answers. Only a flow control subject is
// answered.
func TestFollow_AnswersToFlowControlOnly(t *testing.T) {
	t.Parallel()
	b := embeddedBus(t, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	inboxes := make(chan string, 1)
	relayed(t, b, func(_ *nats.Conn, request string, m *nats.Msg) bool {
		if inbox := deliversTo(m.Data); inbox != "" {
			select {
			case inboxes <- inbox:
			default:
			}
		}
		return false
	})
	delivered := make(chan uint64, 9)
	ended := make(chan struct{})
	go func() { // ends with ctx
		defer close(ended)
		_ = b.FollowLog(ctx, 0, 0, func(e model.LogEntry) { delivered <- e.Seq })
	}()
	to := <-inboxes
	before := stored(t, b)
	hostile := nats.NewMsg(to)
	hostile.Reply = b.streams.Names.Log(0, "other")
	stalled := nats.NewMsg(to)
	stalled.Header.Set("Nats-Consumer-Stalled", b.streams.Names.Log(0, "cart"))
	for _, m := range []*nats.Msg{hostile, stalled} {
		if err := b.streams.NC.PublishMsg(m); err != nil {
			t.Fatal(err)
		}
	}
	mustAppend(t, b, "cart")
	<-delivered // after both
	mustAppend(t, b, "cup")
	if after := stored(t, b); after != [2]uint64{before[0] + 2, before[1] + 2} {
		t.Errorf("the streams hold %v, they held %v", after, before)
	}
	cancel()
	<-ended
}
