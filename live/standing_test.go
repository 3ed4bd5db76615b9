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
	lasting = 5 * time.Second // until what may pass is told

	fine   = "current"
	tooBad = "mood could not be computed: two is too many"
)

// toldAll waits until all have been told of the document what is wanted, and no more.
func (w *world) toldAll(all []*seen, want ...string) {
	w.Helper()
	for _, s := range all {
		w.Eventually(fmt.Sprintf("they are told %q", want), func() bool { return len(s.told()) >= len(want) })
	}
	w.Pass(time.Minute)
	for _, s := range all {
		if told := s.told(); !slices.Equal(told, want) {
			w.Errorf("told %q, want %q", told, want)
		}
	}
}

// A computation that begins to fail leaves the value that it has made before, in the log and with
// all who watch; and if it comes to the same again, there is no new one.
func TestWatch_SaysThatWhatADocumentIsComputedFromFails_AndNoLongerDoes(t *testing.T) {
	for _, doc := range []string{"mood", "sign"} { // its own computation, and one behind it
		t.Run(doc, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				for _, id := range []string{"a", "b", "c"} { // of whom one owns the space
					w.worker(id, live.Config{})
				}
				var all []*seen
				for range 20 { // they are answered by whichever
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

// It is told soon: at the next beat of who has just begun, within two of them otherwise.
func TestWatch_SaysItSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.worker("a", live.Config{})
		w.send("add", 2)
		w.settled(2)
		began := time.Now()
		s := w.follow("mood", 0)
		w.Eventually("it is told", func() bool { return len(s.told()) == 1 })
		if took := time.Since(began); took > 3*live.Heartbeat/2 {
			t.Errorf("at first it took %s", took)
		}
		w.send("add", 1)
		w.settled(3)
		began = time.Now()
		w.Eventually("it is told", func() bool { return len(s.told()) == 2 })
		if took := time.Since(began); took > 5*live.Heartbeat/2 {
			t.Errorf("then it took %s", took)
		}
	})
}

// Whoever dies: who watches is told of what fails by the next one as well.
func TestWatch_SaysItAgainWhenAnotherWorkerAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.worker("a", live.Config{})
		w.send("add", 2)
		w.settled(2)
		s := w.follow("mood", 0)
		w.Eventually("it is told", func() bool { return len(s.told()) == 1 })
		w.worker("b", live.Config{})
		a.Shutdown()
		w.toldAll([]*seen{s}, tooBad, tooBad)
	})
}

// A space that does not get on is told of when that lasts; a takeover does not.
func TestWatch_SaysThatTheSpaceDoesNotAnswerIfThatLasts(t *testing.T) {
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
		w.Eventually("it is told", func() bool { return len(s.told()) == 2 })
		if took, why := time.Since(began), s.told()[1]; took < lasting || took > 2*lasting || why != "the space has not answered yet: it is being loaded, or at work" {
			t.Errorf("told %q after %s", why, took)
		}
		close(w.stuck)
		w.Eventually("it is told that it does", func() bool { return len(s.told()) == 3 })
		owner := a
		if b.Owner("s") == "b" {
			owner = b
		}
		owner.Crash()
		w.Eventually("it is served by the other", func() bool { return a.Owner("s") == b.Owner("s") })
		w.Pass(time.Minute)
		if told := s.told(); slices.ContainsFunc(told[2:], func(t string) bool { return t != fine }) {
			t.Errorf("what has passed quickly was told: %q", told)
		}
	})
}

// A worker that has lost its connection goes on answering over HTTP: that what it has is old is
// told there, though it serves the space itself.
func TestWatch_SaysThatItsWorkerIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.worker("a", live.Config{})
		w.send("add", 1)
		s := w.watching(func(ctx context.Context, s *seen) error {
			return a.Watch(ctx, live.Watch{Space: "s", Document: "double"}, s.add)
		})
		w.toldAll([]*seen{s}, fine)
		a.Bus.Disconnect()
		w.Eventually("it is told", func() bool { return len(s.told()) == 2 })
		if why := s.told()[1]; !strings.HasPrefix(why, "worker a, which is to serve the space, does not answer: ") {
			t.Errorf("told %q", why)
		}
		a.Bus.Reconnect()
		w.Eventually("it is told", func() bool { told := s.told(); return told[len(told)-1] == fine })
	})
}

// What is held back is old for a while by design: that is told if it lasts without a new value.
func TestWatch_SaysThatAValueIsHeldBackIfThatLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.worker("a", live.Config{})
		w.send("add", 1)
		w.settled(1) // or the first value is that of nothing, for an hour
		s, calm := w.follow("rare", 0), w.follow("calm", 0)
		w.Eventually("they have a value", func() bool { return s.last() == "1" && calm.last() == "1" })
		for n := 2; n < 120; n++ { // calm has news every two seconds, and is behind nearly always
			w.send("add", 1)
			w.settled(n)
			w.Pass(500 * time.Millisecond)
		}
		if told := s.told(); len(told) == 0 || told[len(told)-1] != "rare is held back (throttle)" {
			t.Errorf("of what may run once in an hour: %q", told)
		}
		if told := calm.told(); slices.Contains(told, "calm is held back (throttle)") {
			t.Errorf("of what may run every two seconds: %q", told)
		}
		w.toldAll([]*seen{calm}, fine)
	})
}

// What it costs: one question for many documents, however many watch them.
func TestWatch_AsksAnOwnerOnceForAllThatIsWatched(t *testing.T) {
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
		if n := p.asks.n.Load() - n; n < 55 || n > 65 { // two questions each two seconds
			t.Errorf("it asked %d times in a minute", n)
		}
		if w.ran() != ran {
			t.Errorf("it ran %d times for that", w.ran()-ran)
		}
	})
}

// While a deployment is being upgraded, some owners do not know the question.
func TestWatch_SaysNothingIfTheOwnerDoesNotKnowTheQuestion(t *testing.T) {
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

// newer is a connection to workers that say more than this client knows.
type newer struct{ port.Client }

func (b newer) Listen(ctx context.Context, endpoint string, q []byte, deliver func(model.Part)) error {
	return b.Client.Listen(ctx, endpoint, q, func(p model.Part) {
		deliver(model.Part{Header: map[string]string{live.HeaderEvent: "eclipse", live.HeaderRevision: "1000"}, Data: []byte("{")})
		deliver(p)
	})
}

func TestWatch_KindsThatAClientDoesNotKnowArePassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.worker("a", live.Config{})
		w.client.Bus = newer{w.Client}
		s := w.follow("n", 0)
		for n := 1; n <= 3; n++ {
			w.send("add", 1)
			w.Eventually("the value is told", func() bool { return s.last() == strconv.Itoa(n) })
			w.Pass(10 * time.Second)
		}
		if n := len(s.of("eclipse", live.Broken)); n > 0 {
			t.Errorf("%d were passed on, or have broken it", n)
		}
	})
}
