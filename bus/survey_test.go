package bus_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/bus/survey"
	"github.com/settlehq/settle/model"
)

// lost returns the losses that a survey reports.
func lost(t *testing.T, cfg bus.Config) (said []string) {
	t.Helper()
	ctx, cancel := contextOf(t)
	defer cancel()
	s, err := survey.New(ctx, cfg, survey.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range s.Reaches {
		if r.Unseen != nil {
			t.Errorf("partition %d: %v", r.Partition, r.Unseen)
		}
		said = append(said, r.Lost(s.Prefix)...)
	}
	return said
}

// mustSend stores events in the lane of a space.
func mustSend(t *testing.T, b *bus.Bus, space string, ids ...string) {
	t.Helper()
	for _, id := range ids {
		sent := make(chan error, 1)
		b.Send(model.Message{Space: space, Stream: "s", ID: id}, func(_ model.SendResult, err error) { sent <- err })
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
	}
}

// commitAt appends a commit that has handled the lane up to floor.
func commitAt(t *testing.T, b *bus.Bus, space string, expect, floor uint64) uint64 {
	t.Helper()
	c := &model.Commit{Version: model.CommitVersion, Space: space, Runtime: "r", Epoch: 1, Attempt: expect + 1, Cursor: model.Cursor{Floor: floor}}
	data := model.AppendCommit(nil, c, nil)
	seq, err := appendOne(b, model.Append{Space: space, ID: c.ID(), Expect: expect, Data: data})
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

// The last item in a bucket need not belong to the log: a lane has more events than its log has commits as
// soon as one commit handles several, and wakeups have a sequence of their own.
func TestSurvey_NothingIsLostIfTheNewestItemIsNotOfTheLog(t *testing.T) {
	t.Parallel()
	server := natstest.StartServer(t, embedded.Config{})
	b := connect(t, bus.Config{Server: server, Partitions: 1})
	if err := b.Provision(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustSend(t, b, "cart", "e1", "e2", "e3", "e4", "e5")
	head := commitAt(t, b, "cart", 0, 5)
	mark := model.StateDoc{Data: []byte("{}"), Seq: head}
	if err := b.SaveState(t.Context(), "cart", []model.StateDoc{{Doc: "d", Data: []byte("1"), Seq: head}}, &mark); err != nil {
		t.Fatal(err)
	}
	none := func(last string) {
		t.Helper()
		if said := lost(t, bus.Config{Server: server}); len(said) > 0 {
			t.Errorf("the newest item is %s, and the survey reports lost messages: %q", last, said)
		}
	}
	none("a mark")
	if err := b.SavePosition(t.Context(), 0, "lane", 5); err != nil {
		t.Fatal(err)
	}
	none("the position in the lane")
	due := []model.StateDoc{{Doc: model.DueKey, Data: []byte("1"), Seq: head + 7}}
	if err := b.SaveState(t.Context(), "cart", due, nil); err != nil {
		t.Fatal(err)
	}
	none("when a space is due")
}

// Streams change during a survey: the properties of a stream are read before its end.
func TestSurvey_NothingIsLostIfTheStreamsGrow(t *testing.T) {
	var grow atomic.Pointer[func()]
	b := through(t, func(request string, m *nats.Msg) bool {
		if strings.HasPrefix(request, "STREAM.MSG.GET.KV_SETTLE_STATE") || strings.HasPrefix(request, "STREAM.MSG.GET.SETTLE_LOG") {
			if f := grow.Swap(nil); f != nil {
				(*f)()
			}
		}
		return true
	})
	if err := b.Provision(t.Context()); err != nil {
		t.Fatal(err)
	}
	url := b.JetStream().Conn().ConnectedUrl()
	writeContext(t, "direct", map[string]string{"url": url})
	direct := connect(t, bus.Config{Context: "direct", Partitions: 1})
	writeContext(t, "between", map[string]string{"url": url, "jetstream_api_prefix": "between.API"})
	head := commitAt(t, direct, "cart", 0, 0)
	for n := range 3 {
		f := func() {
			mustSend(t, direct, "cart", "e"+string(rune('a'+n)))
			head = commitAt(t, direct, "cart", head, uint64(n+1))
			mark := model.StateDoc{Data: []byte("{}"), Seq: head}
			if err := direct.SaveState(context.Background(), "shop"+string(rune('a'+n)), nil, &mark); err != nil {
				t.Error(err)
			}
			if err := direct.SavePosition(context.Background(), 0, "released", head); err != nil {
				t.Error(err)
			}
		}
		grow.Store(&f)
		if said := lost(t, bus.Config{AckTimeout: 5 * time.Second}); len(said) > 0 {
			t.Errorf("the survey reports lost messages: %q", said)
		}
		if grow.Load() != nil {
			t.Error("the streams have not grown")
		}
	}
}

// A missing message is reported as lost, whichever stream reveals it.
func TestSurvey_LossesAreReported(t *testing.T) {
	t.Parallel()
	server := natstest.StartServer(t, embedded.Config{})
	for prefix, spoil := range map[string]struct {
		how  func(b *bus.Bus, head uint64) error
		says string
	}{
		"released": {func(b *bus.Bus, head uint64) error { return b.SavePosition(t.Context(), 0, "released", head+1) }, "RELEASED_LOG_0 ends at 1, and is known to have reached 2"},
		"lane":     {func(b *bus.Bus, _ uint64) error { return b.SavePosition(t.Context(), 0, "lane", 9) }, "LANE_LANE_0 ends at 2, and events up to 9 were handled"},
		"cursor":   {func(b *bus.Bus, head uint64) error { commitAt(t, b, "cart", head, 8); return nil }, "CURSOR_LANE_0 ends at 2, and events up to 8 were handled"},
		"mark": {func(b *bus.Bus, head uint64) error {
			mark := model.StateDoc{Data: []byte("{}"), Seq: head + 4}
			if err := b.SaveState(t.Context(), "cart", nil, &mark); err != nil {
				return err
			}
			return b.SavePosition(t.Context(), 0, "lane", 2)
		}, "MARK_LOG_0 ends at 1, and is known to have reached 5"},
		// The last commit cannot be decoded: everything else is still compared.
		"unreadable": {func(b *bus.Bus, head uint64) error {
			if _, err := appendOne(b, model.Append{Space: "cart", ID: "later", Expect: head, Data: []byte(`{"v":99}`)}); err != nil {
				return err
			}
			return b.SavePosition(t.Context(), 0, "lane", 9)
		}, "UNREADABLE_LANE_0 ends at 2, and events up to 9 were handled"},
	} {
		t.Run(prefix, func(t *testing.T) {
			b := connect(t, bus.Config{Server: server, Prefix: prefix, Partitions: 1})
			if err := b.Provision(t.Context()); err != nil {
				t.Fatal(err)
			}
			mustSend(t, b, "cart", "e1", "e2")
			if err := spoil.how(b, commitAt(t, b, "cart", 0, 2)); err != nil {
				t.Fatal(err)
			}
			if said := strings.Join(lost(t, bus.Config{Server: server, Prefix: prefix}), "; "); said != spoil.says {
				t.Errorf("said %q, want %q", said, spoil.says)
			}
		})
	}
}

// Dead letters that no totals count yet take one request per page to count, and the oldest open letter one
// more for each page before it. With totals, it takes one request for each page before it, and one for the
// notes about its letters.
func TestSurvey_DeadLettersAreCountedFromTheIndex(t *testing.T) {
	var asked atomic.Int64
	b := through(t, func(request string, _ *nats.Msg) bool {
		if strings.HasSuffix(request, ".SETTLE_DEAD") {
			asked.Add(1)
		}
		return true
	})
	if err := b.Provision(t.Context()); err != nil {
		t.Fatal(err)
	}
	begun := time.Now().UTC()
	for i := range 700 {
		d := &model.DeadLetter{
			Version: model.DeadVersion, Space: "cart", Stream: "s", Event: "e" + strconv.Itoa(i), Outcome: model.Failed, Ended: begun.Add(time.Duration(i) * time.Second),
		}
		if of := i - 601; of >= 0 && of < 10 {
			d.Stream = "t" + strconv.Itoa(of)
		}
		if err := b.StoreDead(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		if note := d.Name().Note(model.Dismissed); i < 600 {
			d.Event, d.Outcome = note.Event, model.Dismissed
			if err := b.StoreDead(t.Context(), d); err != nil {
				t.Fatal(err)
			}
		}
	}
	ctx, cancel := contextOf(t)
	defer cancel()
	pages := int64(1300/512 + 1)
	for _, totals := range []bool{false, true} {
		when, most := "without totals", 2+2*pages
		if totals {
			when, most = "with totals", 2+1+2*pages
			if err := b.KeepDeadTotals(ctx); err != nil {
				t.Fatal(err)
			}
		}
		asked.Store(0)
		s, err := survey.New(ctx, bus.Config{AckTimeout: 5 * time.Second}, survey.Config{})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range s.Streams {
			if f.Component != "dead" {
				continue
			}
			if f.Dead == nil || f.Dead.Letters != 700 || f.Dead.Open != 100 || f.Dead.Dismissed != 600 || !f.Dead.OldestOpen.Equal(begun.Add(600*time.Second)) || f.Dead.Stream != "s" || f.Dead.OfStream != 90 {
				t.Errorf("%s: the dead letters are %+v, begun %v", when, f.Dead, begun)
				continue
			}
			var firsts []string
			for i := range f.Dead.Firsts {
				firsts = append(firsts, f.Dead.Firsts[i].Stream+"/"+f.Dead.Firsts[i].Event)
			}
			if want := []string{"s/e600", "t0/e601", "t1/e602"}; !slices.Equal(firsts, want) {
				t.Errorf("%s: the first of streams are %v, want %v", when, firsts, want)
			}
		}
		if n := asked.Load(); n > most {
			t.Errorf("%s: %d requests for the stream, want %d", when, n, most)
		}
	}
}
