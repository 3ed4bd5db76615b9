package test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/live"
)

// watchPlainly watches a document with plain NATS: a subscription, and a message.
func watchPlainly(t *testing.T, nc *nats.Conn, subject, question string) *nats.Subscription {
	t.Helper()
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err == nil {
		err = nc.PublishRequest(subject, inbox, []byte(question))
	}
	if err != nil {
		t.Fatal(err)
	}
	return sub
}

// next returns the next message of a watch, skipping some kinds.
func next(t *testing.T, sub *nats.Subscription, not ...live.Kind) *nats.Msg {
	t.Helper()
	for {
		m, err := sub.NextMsgWithContext(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(not, live.Kind(m.Header.Get(live.HeaderEvent))) {
			return m
		}
	}
}

// nextValue returns the next message of a watch with a change of the document.
func nextValue(t *testing.T, sub *nats.Subscription) *nats.Msg {
	t.Helper()
	return next(t, sub, live.Beating, live.Current, live.Stale) // a machine that is slow may have more to say
}

func revisionOf(t *testing.T, m *nats.Msg) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(m.Header.Get(live.HeaderRevision), 10, 64)
	if err != nil {
		t.Fatalf("message %v: %v", m.Header, err)
	}
	return n
}

// Any NATS client can read and watch documents, with features that every NATS library has.
func TestLive_APlainClientGetsAndWatches(t *testing.T) {
	t.Parallel()
	onBothServers(t, plainLive)
}

func plainLive(t *testing.T, base settle.Config) {
	base.MemberTTL = patience // a plain client does not ask again when a worker that is slow is taken for dead
	base.Programs = settle.Always(relay())
	d := deploy(t, base)
	ctx := testContext(t)
	nc, prefix := d.Bus().Conn(), cmp.Or(d.cfg.Bus.Prefix, "settle") // nothing else of the bus is used
	if _, err := d.Client().Call(ctx, flight(1, "here", "there")); err != nil {
		t.Fatal(err)
	}

	m, err := nc.RequestWithContext(ctx, prefix+".api.get", []byte(`{"space":"here","document":"departed"}`))
	if err != nil {
		t.Fatal(err)
	}
	var a live.Answer
	if err := json.Unmarshal(m.Data, &a); err != nil || string(a.Value) != "1" || a.Revision == 0 {
		t.Errorf("get: %s, %v", m.Data, err)
	}

	sub := watchPlainly(t, nc, prefix+".api.watch", `{"space":"here","document":"total"}`)
	var last uint64
	for n := 1; n <= 5; n++ {
		for {
			m := nextValue(t, sub)
			if m.Header.Get(live.HeaderEvent) == string(live.Deleted) {
				continue // it has not been computed yet
			}
			if last >= revisionOf(t, m) {
				t.Fatalf("revision %d after %d", revisionOf(t, m), last)
			}
			last = revisionOf(t, m)
			if string(m.Data) == strconv.Itoa(n) {
				break
			}
		}
		if _, err := d.Client().Call(ctx, flight(n+1, "here", "there")); err != nil {
			t.Fatal(err)
		}
	}
	if m := nextValue(t, sub); string(m.Data) != "6" || m.Header.Get(live.HeaderPrevious) != strconv.FormatUint(last, 10) {
		t.Errorf("then %s, %v", m.Data, m.Header)
	}

	info, err := nc.RequestWithContext(ctx, "$SRV.INFO."+live.ServiceName, nil)
	if err != nil {
		t.Fatal(err)
	}
	var about micro.Info
	if err := json.Unmarshal(info.Data, &about); err != nil || len(about.Endpoints) != 5 { // get and watch, both also in the name of a principal, and what workers ask each other
		t.Errorf("what `nats micro` shows: %s, %v", info.Data, err)
	}

	if err := d.StopWorkers(ctx); err != nil {
		t.Fatal(err)
	}
	if m := nextValue(t, sub); m.Header.Get(live.HeaderEvent) != string(live.Moved) || revisionOf(t, m) <= last {
		t.Errorf("when the worker has left: %v", m.Header)
	}
}

// Any NATS client is notified that a value is out of date, and when it no longer is, even without a new value.
func TestLive_APlainClientIsToldThatAValueIsOld(t *testing.T) {
	t.Parallel()
	onBothServers(t, plainStale)
}

func plainStale(t *testing.T, base settle.Config) {
	base.Workers, base.MemberTTL = 3, patience // a slow machine must not look like a dead worker
	base.Programs = settle.Always(relay().Compute("mood", func(v *settle.View) (settle.Value, error) {
		if n, _ := v.Get("departed").AsInt(); n == 2 {
			return settle.Value{}, errors.New("two is too many")
		}
		return settle.ValueOf("fine")
	}))
	d := deploy(t, base)
	ctx := testContext(t)
	nc, prefix := d.Bus().Conn(), cmp.Or(d.cfg.Bus.Prefix, "settle")
	depart := func(n int) {
		if _, err := d.Client().Call(ctx, flight(n, "here", "there")); err != nil {
			t.Fatal(err)
		}
	}
	depart(1)
	sub := watchPlainly(t, nc, prefix+".api.watch", `{"space":"here","document":"mood"}`)
	for n, want := range []string{"current ", `stale "mood could not be computed: two is too many"`, "current "} {
		for told := ""; told != want; { // a machine that is slow may have more to say of it
			m := next(t, sub, live.Beating, live.Value, live.Deleted)
			told = m.Header.Get(live.HeaderEvent) + " " + string(m.Data)
		}
		depart(n + 2)
	}
}

// A watch over NATS continues while workers crash and start, and never goes back.
func TestLive_AWatchGoesOnWhileWorkersAreKilled(t *testing.T) {
	t.Parallel()
	onBothServers(t, liveKills)
}

func liveKills(t *testing.T, base settle.Config) {
	base.Programs, base.Workers = settle.Always(relay()), 2
	d := deploy(t, base)
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	told := make(chan live.Event, 1000)
	ended := make(chan error, 1)
	go func() { // ends with ctx
		ended <- (&live.Client{Bus: d.Bus()}).Watch(ctx, live.Watch{Space: "here", Document: "total"}, func(e live.Event) {
			if e.Kind == live.Value {
				told <- e
			}
		})
	}()
	var last uint64
	for n := 1; n <= 6; n++ {
		if _, err := d.Client().Call(ctx, flight(n, "here", "there")); err != nil {
			t.Fatal(err)
		}
		if n%2 == 0 {
			if _, err := d.AddWorker(ctx); err != nil {
				t.Fatal(err)
			}
			d.KillWorker(d.Workers()[0])
		}
		for v := ""; v != strconv.Itoa(n); {
			select {
			case e := <-told:
				if e.Revision <= last {
					t.Fatalf("revision %d after %d", e.Revision, last)
				}
				v, last = string(e.Data), e.Revision
			case <-ctx.Done():
				t.Fatalf("%d is never told", n)
			}
		}
		a, err := d.Client().Space("here").GetCurrent(ctx, "total")
		if v, _ := a.Value.AsInt(); err != nil || v != int64(n) || a.Revision < last {
			t.Errorf("get: %+v, %v", a, err)
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the watch has ended: %v", err)
	}
}
