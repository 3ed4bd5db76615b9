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
	gracePeriod = 5 * time.Second // gracePeriod of the package

	fine   = "current"
	tooBad = "mood could not be computed: two is too many"
)

// toldAll waits until all watches have delivered exactly these statuses.
func (w *world) toldAll(all []*seen, want ...string) {
	w.Helper()
	for _, s := range all {
		w.Eventually(fmt.Sprintf("the statuses are %q", want), func() bool { return len(s.told()) >= len(want) })
	}
	w.Pass(time.Minute)
	for _, s := range all {
		if told := s.told(); !slices.Equal(told, want) {
			w.Errorf("statuses %q, want %q", told, want)
		}
	}
}

// When a computation begins to fail, its last value stays in the log and with the watchers; when it succeeds
// again with the same result, there is no new value. The status reports both.
func TestWatch_IsStaleWhileAComputationFails(t *testing.T) {
	for _, doc := range []string{"mood", "sign"} { // a computation that fails itself, and one that reads it
		t.Run(doc, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				for _, id := range []string{"a", "b", "c"} { // one of which owns the space
					w.worker(id, live.Config{})
				}
				var all []*seen
				for range 20 { // any worker answers them
					all = append(all, w.follow(doc, 0))
				}
				w.send("add", 1)
				w.toldAll(all, fine)
				w.send("add", 1)
				w.toldAll(all, fine, tooBad)
				late := w.follow(doc, 0)
				w.toldAll([]*seen{late}, tooBad)
				w.send("add", 1)
				w.toldAll(all, fine, tooBad, fine)
				for _, s := range all {
					if n := len(s.of(live.Value)); n != 1 {
						t.Errorf("%d values", n)
					}
					_, revision := w.logged(doc)
					for _, e := range s.of(live.Stale) {
						if e.Revision != revision || e.Data != nil {
							t.Errorf("%+v: the value is of revision %d", e, revision)
						}
					}
				}
			})
		})
	}
}

// A new watch learns the status with the next heartbeat, an old one within two.
func TestWatch_IsStaleWithinTwoHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.worker("a", live.Config{})
		w.send("add", 2)
		w.settled(2)
		began := time.Now()
		s := w.follow("mood", 0)
		w.Eventually("the status is delivered", func() bool { return len(s.told()) == 1 })
		if took := time.Since(began); took > 3*live.Heartbeat/2 {
			t.Errorf("at first it took %s", took)
		}
		w.send("add", 1)
		w.settled(3)
		began = time.Now()
		w.Eventually("the status is delivered", func() bool { return len(s.told()) == 2 })
		if took := time.Since(began); took > 5*live.Heartbeat/2 {
			t.Errorf("then it took %s", took)
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
		w.Eventually("the status is delivered", func() bool { return len(s.told()) == 1 })
		w.worker("b", live.Config{})
		a.Shutdown()
		w.toldAll([]*seen{s}, tooBad, tooBad)
	})
}

// A space that is stuck is reported after the grace period; a takeover is too short to be.
func TestWatch_IsStaleWhenItsSpaceDoesNotAnswerForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.worker("a", live.Config{}), w.worker("b", live.Config{})
		w.Pass(5 * time.Second)
		w.send("add", 1)
		s := w.follow("double", 0)
		w.toldAll([]*seen{s}, fine)
		w.stuck = make(chan struct{})
		w.send("stick", 1)
		began := time.Now()
		w.Eventually("the status is delivered", func() bool { return len(s.told()) == 2 })
		if took, why := time.Since(began), s.told()[1]; took < gracePeriod || took > 2*gracePeriod || why != "the space has not answered yet: it is being loaded, or at work" {
			t.Errorf("status %q after %s", why, took)
		}
		close(w.stuck)
		w.Eventually("the status is delivered", func() bool { return len(s.told()) == 3 })
		owner := a
		if b.Owner("s") == "b" {
			owner = b
		}
		owner.Crash()
		w.Eventually("it is served by the other", func() bool { return a.Owner("s") == b.Owner("s") })
		w.Pass(time.Minute)
		if told := s.told(); slices.ContainsFunc(told[2:], func(t string) bool { return t != fine }) {
			t.Errorf("a short interruption was reported: %q", told)
		}
	})
}

// A worker that has lost its connection still answers over HTTP: it reports its values as stale, even those of
// its own spaces.
func TestWatch_IsStaleWhenItsWorkerIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.worker("a", live.Config{})
		w.send("add", 1)
		s := w.watching(func(ctx context.Context, s *seen) error {
			return a.Watch(ctx, live.Watch{Space: "s", Document: "double"}, s.add)
		})
		w.toldAll([]*seen{s}, fine)
		a.Bus.Disconnect()
		w.Eventually("the status is delivered", func() bool { return len(s.told()) == 2 })
		if why := s.told()[1]; !strings.HasPrefix(why, "worker a, which is to serve the space, does not answer: ") {
			t.Errorf("status %q", why)
		}
		a.Bus.Reconnect()
		w.Eventually("the status is delivered", func() bool { told := s.told(); return told[len(told)-1] == fine })
	})
}

// A value that is held back is out of date by design: that is reported if it lasts without a new value.
func TestWatch_IsStaleWhenAValueIsHeldBackForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.worker("a", live.Config{})
		w.send("add", 1)
		w.settled(1) // so that not the empty value is held for an hour
		s, calm := w.follow("rare", 0), w.follow("calm", 0)
		w.Eventually("they have a value", func() bool { return s.last() == "1" && calm.last() == "1" })
		for n := 2; n < 120; n++ { // calm changes every two seconds, and is nearly always behind
			w.send("add", 1)
			w.settled(n)
			w.Pass(500 * time.Millisecond)
		}
		if told := s.told(); len(told) == 0 || told[len(told)-1] != "rare is held back (throttle)" {
			t.Errorf("of a computation that may run once an hour: %q", told)
		}
		if told := calm.told(); slices.Contains(told, "calm is held back (throttle)") {
			t.Errorf("of a computation that may run every two seconds: %q", told)
		}
		w.toldAll([]*seen{calm}, fine)
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
			t.Errorf("it asked %d times in a minute", n)
		}
		if w.ran() != ran {
			t.Errorf("it ran %d times for that", w.ran()-ran)
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
		w.toldAll([]*seen{s})
		p.asks.refuse.Store(false)
		w.toldAll([]*seen{s}, tooBad)
	})
}

// newer is a connection to workers that send kinds of events that this client does not know.
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
			t.Errorf("%d were passed on, or have broken it", n)
		}
	})
}
