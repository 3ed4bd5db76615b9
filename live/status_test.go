package live_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

const (
	gracePeriod = 5 * time.Second // as in package live

	fine   = "current"
	tooBad = "mood could not be computed: two is too many"
)

// waitStatuses waits until all watches have delivered exactly these statuses.
func (w *world) waitStatuses(all []*seen, want ...string) {
	w.Helper()
	for _, s := range all {
		w.Eventually(fmt.Sprintf("the statuses are %q", want), func() bool { return len(s.statuses()) >= len(want) })
	}
	w.Pass(time.Minute)
	for _, s := range all {
		if told := s.statuses(); !slices.Equal(told, want) {
			w.Errorf("statuses %q, want %q", told, want)
		}
	}
}

// When a computation begins to fail, its last value stays in the log and with the watchers. When it succeeds
// again with the same result, there is no new value. The status reports both transitions.
func TestWatch_IsStaleWhileAComputationFails(t *testing.T) {
	for _, doc := range []string{"mood", "sign"} { // a computation that fails, and one that reads it
		t.Run(doc, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				for _, id := range []string{"a", "b", "c"} { // one of them owns the space
					w.worker(id, live.Config{})
				}
				var all []*seen
				for range 20 { // served by any of the workers
					all = append(all, w.follow(doc, 0))
				}
				w.send("add", 1)
				w.waitStatuses(all, fine)
				w.send("add", 1)
				w.waitStatuses(all, fine, tooBad)
				late := w.follow(doc, 0)
				w.waitStatuses([]*seen{late}, tooBad)
				w.send("add", 1)
				w.waitStatuses(all, fine, tooBad, fine)
				for _, s := range all {
					if n := len(s.of(live.Value)); n != 1 {
						t.Errorf("%d values", n)
					}
					_, revision := w.logged(doc)
					for _, e := range s.of(live.Stale) {
						if e.Revision != revision || e.Data != nil {
							t.Errorf("%+v: the value has revision %d", e, revision)
						}
					}
				}
			})
		})
	}
}

// A new watch receives the status with the next heartbeat, an existing one within two.
func TestWatch_IsStaleWithinTwoHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.worker("a", live.Config{})
		w.send("add", 2)
		w.settled(2)
		began := time.Now()
		s := w.follow("mood", 0)
		w.Eventually("the status is delivered", func() bool { return len(s.statuses()) == 1 })
		if took := time.Since(began); took > 3*live.Heartbeat/2 {
			t.Errorf("the new watch received it after %s", took)
		}
		w.send("add", 1)
		w.settled(3)
		began = time.Now()
		w.Eventually("the status is delivered", func() bool { return len(s.statuses()) == 2 })
		if took := time.Since(began); took > 5*live.Heartbeat/2 {
			t.Errorf("the existing watch received it after %s", took)
		}
	})
}

// When the answering worker dies, the next one reports the status again.
func TestWatch_IsStaleAgainWhenAnotherWorkerAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.worker("a", live.Config{})
		w.send("add", 2)
		w.settled(2)
		s := w.follow("mood", 0)
		w.Eventually("the status is delivered", func() bool { return len(s.statuses()) == 1 })
		w.worker("b", live.Config{})
		a.Shutdown()
		w.waitStatuses([]*seen{s}, tooBad, tooBad)
	})
}

// A space that is stuck is reported after the grace period. A takeover ends before that.
func TestWatch_IsStaleWhenItsSpaceDoesNotAnswerForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.worker("a", live.Config{}), w.worker("b", live.Config{})
		w.Pass(5 * time.Second)
		w.send("add", 1)
		s := w.follow("double", 0)
		w.waitStatuses([]*seen{s}, fine)
		w.stuck = make(chan struct{})
		w.send("stick", 1)
		began := time.Now()
		w.Eventually("the status is delivered", func() bool { return len(s.statuses()) == 2 })
		if took, why := time.Since(began), s.statuses()[1]; took < gracePeriod || took > 2*gracePeriod || why != "the space has not answered yet: it is being loaded, or at work" {
			t.Errorf("status %q after %s", why, took)
		}
		close(w.stuck)
		w.Eventually("the status is delivered", func() bool { return len(s.statuses()) == 3 })
		owner := a
		if b.Owner("s") == "b" {
			owner = b
		}
		owner.Crash()
		w.Eventually("the other worker serves the space", func() bool { return a.Owner("s") == b.Owner("s") })
		w.Pass(time.Minute)
		if told := s.statuses(); slices.ContainsFunc(told[2:], func(t string) bool { return t != fine }) {
			t.Errorf("a short interruption was reported: %q", told)
		}
	})
}

// A worker that has lost its connection still answers over HTTP. It reports its values as stale, even those
// of its own spaces.
func TestWatch_IsStaleWhenItsWorkerIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.worker("a", live.Config{})
		w.send("add", 1)
		s := w.watching(func(ctx context.Context, s *seen) error {
			return a.Watch(ctx, live.Watch{Space: "s", Document: "double"}, s.add)
		})
		w.waitStatuses([]*seen{s}, fine)
		a.Bus.Disconnect()
		w.Eventually("the status is delivered", func() bool { return len(s.statuses()) == 2 })
		if why := s.statuses()[1]; !strings.HasPrefix(why, "worker a, which is to serve the space, does not answer: ") {
			t.Errorf("status %q", why)
		}
		a.Bus.Reconnect()
		w.Eventually("the status is delivered", func() bool { told := s.statuses(); return told[len(told)-1] == fine })
	})
}

// A value that is held back is out of date by design. That is reported if it lasts long without a new value.
func TestWatch_IsStaleWhenAValueIsHeldBackForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.worker("a", live.Config{})
		w.send("add", 1)
		w.settled(1) // or the empty value would be held for an hour
		s, calm := w.follow("rare", 0), w.follow("calm", 0)
		w.Eventually("both documents have a value", func() bool { return s.last() == "1" && calm.last() == "1" })
		for n := 2; n < 120; n++ { // calm changes every two seconds, and is nearly always behind
			w.send("add", 1)
			w.settled(n)
			w.Pass(500 * time.Millisecond)
		}
		if told := s.statuses(); len(told) == 0 || told[len(told)-1] != "rare is held back (throttle)" {
			t.Errorf("statuses of a computation that may run once an hour: %q", told)
		}
		if told := calm.statuses(); slices.Contains(told, "calm is held back (throttle)") {
			t.Errorf("statuses of a computation that may run every two seconds: %q", told)
		}
		w.waitStatuses([]*seen{calm}, fine)
	})
}

// One query covers many documents, however many clients watch them.
func TestWatch_OneStatusQueryCoversAllWatchedDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.worker("a", live.Config{})
		w.send("add", 1)
		w.settled(1)
		for i := range 300 {
			w.follow("double", 0)
			w.follow("none"+strconv.Itoa(i), 0)
		}
		w.Pass(10 * time.Second)
		n, ran := p.asks.n.Load(), w.ran()
		w.Pass(time.Minute)
		if n := p.asks.n.Load() - n; n < 55 || n > 65 { // two queries every two seconds
			t.Errorf("the server sent %d requests in a minute", n)
		}
		if w.ran() != ran {
			t.Errorf("the computation ran %d times", w.ran()-ran)
		}
	})
}

// During an upgrade some owners do not know the query.
func TestWatch_HasNoStatusIfTheOwnerDoesNotKnowTheQuery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.worker("a", live.Config{})
		p.asks.refuse.Store(true)
		w.send("add", 2)
		s := w.follow("mood", 0)
		w.waitStatuses([]*seen{s})
		p.asks.refuse.Store(false)
		w.waitStatuses([]*seen{s}, tooBad)
	})
}

// newer is a connection to workers that send event kinds unknown to this client.
type newer struct{ port.Client }

func (b newer) Listen(ctx context.Context, endpoint string, q []byte, deliver func(model.Part)) error {
	return b.Client.Listen(ctx, endpoint, q, func(p model.Part) {
		deliver(model.Part{Header: map[string]string{live.HeaderEvent: "eclipse", live.HeaderRevision: "1000"}, Data: []byte("{")})
		deliver(p)
	})
}

func TestWatch_SkipsKindsThatTheClientDoesNotKnow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.worker("a", live.Config{})
		w.client.Bus = newer{w.Client}
		s := w.follow("n", 0)
		for n := 1; n <= 3; n++ {
			w.send("add", 1)
			w.Eventually("the value is delivered", func() bool { return s.last() == strconv.Itoa(n) })
			w.Pass(10 * time.Second)
		}
		if n := len(s.of("eclipse", live.Broken)); n > 0 {
			t.Errorf("%d unknown events were delivered, or broke the watch", n)
		}
	})
}
