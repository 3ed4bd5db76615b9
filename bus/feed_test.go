package bus

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/model"
)

// feedOf returns a feed of the space cart that has delivered the log up to last, and what it delivers.
func feedOf(b *Bus, last uint64) (f *feed, got *[]model.LogEntry) {
	got = &[]model.LogEntry{}
	f = &feed{
		logs: b.logs, space: "cart", last: last, deliver: func(e model.LogEntry) { *got = append(*got, e) },
		stream: pastLog, subject: b.streams.Names.Log(0, "cart"), epoch: b.streams.Past.Now(),
	}
	return f, got
}

// published returns the n-th commit of a log as the feed has it, after the entry before.
func published(n, before uint64) *nats.Msg {
	m := &nats.Msg{Header: nats.Header{wire.HeaderCommit: {"of the feed"}}}
	wire.SetNumber(m.Header, wire.HeaderSequence, n)
	wire.SetNumber(m.Header, wire.HeaderLastSequence, before)
	return m
}

func sequences(entries []model.LogEntry) (list []uint64) {
	for _, e := range entries {
		list = append(list, e.Seq)
	}
	return list
}

// A message that follows the last delivered one is delivered. Any other shows that the feed has missed an
// entry, or belongs to another log, and the log is read instead.
func TestFeed_AMessageThatDoesNotFollowMakesItReadTheLog(t *testing.T) {
	t.Parallel()
	b := storedLog(t, Config{})
	for _, c := range []struct {
		name         string
		last, before uint64
		deliver      []uint64
		id           string // of the last of them
	}{
		{"it follows", 2, 2, []uint64{3}, "of the feed"},
		{"one before it is missing", 1, 2, []uint64{2, 3}, "a/0/3"},
		{"it follows an earlier one", 2, 1, []uint64{3}, "a/0/3"},
		{"the entry is already delivered", 3, 2, nil, ""},
	} {
		f, got := feedOf(b, c.last)
		if err := f.receive(t.Context(), published(3, c.before)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(sequences(*got), c.deliver) {
			t.Errorf("%s: delivered %v, want %v", c.name, sequences(*got), c.deliver)
		}
		if n := len(*got); n > 0 && (*got)[n-1].ID != c.id {
			t.Errorf("%s: the last one is of commit %s, want %s", c.name, (*got)[n-1].ID, c.id)
		}
	}
}

// The last messages of a feed have no successor that would reveal their loss; the head of the space does. A
// lagging replica does not have them yet, and is asked again.
func TestFeed_LostLastMessagesAreFoundByTheHead(t *testing.T) {
	t.Parallel()
	b := storedLog(t, Config{})
	b.HurryUp()
	behind := 0
	relayed(t, b, func(_ *nats.Conn, request string, m *nats.Msg) bool {
		if !strings.HasPrefix(request, "DIRECT.GET.") || behind == 2 {
			return false
		}
		behind++
		batchIsOver(m, "404", "Message Not Found")
		return true
	})
	f, got := feedOf(b, 1)
	if err := f.compareHead(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := []uint64{2, 3}; !slices.Equal(sequences(*got), want) || behind != 2 {
		t.Errorf("delivered %v, want %v, after %d answers of a lagging replica", sequences(*got), want, behind)
	}
	if err := f.compareHead(t.Context()); err != nil || len(*got) != 2 {
		t.Errorf("what was delivered is delivered again: %v, %v", sequences(*got), err)
	}
}

// Messages that arrive faster than the follower reads them are dropped. One warning reports it, when those that were not
// dropped are taken.
func TestFeed_DroppedMessagesAreReadFromTheLog(t *testing.T) {
	t.Parallel()
	b := storedLog(t, Config{})
	messages := make(chan *nats.Msg, 1)
	sub, err := b.streams.NC.ChanSubscribe("a.feed", messages)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := b.streams.NC.Publish("a.feed", nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.streams.NC.Flush(); err != nil { // its answer comes after them
		t.Fatal(err)
	}
	f, _ := feedOf(b, 3)
	f.sub, f.messages = sub, messages
	if f.missed() {
		t.Error("the log is read while a message waits")
	}
	<-messages
	if !f.missed() {
		t.Error("two were dropped, and the log is not read")
	}
	if f.missed() {
		t.Error("the log is read again for them")
	}
}

// The server ends a page at any point, and reports that there is more.
func TestReadPages_APageThatIsNotTheLastIsFollowedByTheNext(t *testing.T) {
	t.Parallel()
	b := storedLog(t, Config{})
	pages := 0
	relayed(t, b, func(nc *nats.Conn, request string, m *nats.Msg) bool {
		var r wire.GetRequest
		if !strings.HasPrefix(request, "DIRECT.GET.") || json.Unmarshal(m.Data, &r) != nil || r.Batch == 0 {
			return false
		}
		pages++
		r.Batch = 1
		if data, err := json.Marshal(r); err == nil {
			_ = nc.PublishRequest(jetstream.DefaultAPIPrefix+request, m.Reply, data) // fails only at the end of the test
		}
		return true
	})
	entries, err := b.ReadLog(t.Context(), "cart", 0, 10)
	if want := []uint64{1, 2, 3}; err != nil || !slices.Equal(sequences(entries), want) {
		t.Errorf("read %v, %v, want %v", sequences(entries), err, want)
	}
	if pages < 3 {
		t.Errorf("in %d pages, which proves nothing", pages)
	}
}
