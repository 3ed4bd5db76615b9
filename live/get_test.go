package live_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/model"
)

func TestGet_ReadsAtTheHeadAndComputesWhatIsNotObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.worker("a", live.Config{})
		w.worker("b", live.Config{})
		w.send("add", 3)
		w.settled(3)
		time.Sleep(10 * time.Second)
		if n := w.ran(); n != 0 {
			t.Fatalf("double ran %d times before the get", n)
		}
		a := w.get("double")
		if v, rev := w.logged("double"); string(a.Value) != "6" || v != "6" || a.Revision != rev || !a.Found || a.Stale != "" {
			t.Errorf("answer %+v; the log has %s, %d", a, v, rev)
		}
		w.send("add", 1)
		w.settled(4)
		time.Sleep(time.Minute)
		if n := w.ran(); n != 1 {
			t.Errorf("double ran %d times for one get", n)
		}
		if a := w.get("none"); a.Found || a.Revision != 0 || a.Value != nil {
			t.Errorf("a missing path: %+v", a)
		}
	})
}

// A get waits for a takeover or a handover and then succeeds.
func TestGet_WaitsForTheNextOwner(t *testing.T) {
	for name, end := range map[string]func(*process){"killed": func(p *process) { p.Crash() }, "stopped": func(p *process) { p.Shutdown() }} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				a, b := w.worker("a", live.Config{}), w.worker("b", live.Config{})
				time.Sleep(5 * time.Second)
				w.send("add", 1)
				w.settled(1)
				owner, other := a, b
				if b.Owner("s") == "b" {
					owner, other = b, a
				}
				var asking sync.WaitGroup
				for i := range 50 {
					asking.Go(func() { // ends with the answer
						time.Sleep(time.Duration(i) * 20 * time.Millisecond)
						began := time.Now()
						ask := w.client.Get
						if i%2 == 0 {
							ask = other.Get // directly at the service: a live.Client would retry
						}
						if a, err := ask(t.Context(), live.Get{Space: "s", Document: "double"}); err != nil || string(a.Value) != "2" {
							t.Errorf("number %d after %s: %+v, %v", i, time.Since(began), a, err)
						}
					})
				}
				time.Sleep(300 * time.Millisecond)
				end(owner)
				asking.Wait()
			})
		})
	}
}

// A get of a document that is held back waits until its timeout, then answers with the old value and the
// reason.
func TestGet_ADocumentThatIsHeldBackIsStaleAfterTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.worker("a", live.Config{})
		w.worker("b", live.Config{})
		w.send("add", 1)
		w.settled(1)
		if a := w.get("rare"); string(a.Value) != "1" || a.Stale != "" {
			t.Errorf("first %+v", a)
		}
		w.send("add", 1)
		w.settled(2)
		for _, timeout := range []time.Duration{time.Second, 10 * time.Second} {
			began := time.Now()
			a, err := w.client.Get(t.Context(), live.Get{Space: "s", Document: "rare", Timeout: live.Duration(timeout)})
			if err != nil || string(a.Value) != "1" || a.Stale != "rare is held back (throttle)" {
				t.Errorf("then %+v, %v", a, err)
			}
			if took := time.Since(began); took > timeout || took < timeout/2 {
				t.Errorf("the get took %s of %s", took, timeout)
			}
		}
	})
}

func TestGet_ReportsImpossibleRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		began := time.Now()
		if _, err := w.client.Get(t.Context(), live.Get{Space: "s", Document: "n"}); !errors.Is(err, model.ErrNoResponder) || time.Since(began) > 5*time.Second {
			t.Errorf("without a worker: %v after %s", err, time.Since(began))
		}
		w.worker("a", live.Config{})
		for _, q := range []string{`{"space":"s"}`, `{"space":"s","document":"a.b"}`, `{"space":"s","document":"n","form":3}`, `n`, ``, `{"space":"s","document":"n","timeout":"1h"}`, `{"space":"s","document":"n","timeout":3}`} {
			_, err := w.Client.Ask(t.Context(), live.AskGet, []byte(q))
			var said *model.ServiceError
			if !errors.As(err, &said) || said.Code != model.CodeBadRequest {
				t.Errorf("%q: %v", q, err)
			}
		}
	})
}
