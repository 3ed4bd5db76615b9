package space

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space/inspect"
)

func patient(c *Config) { c.DocumentWait = time.Minute }

// An event fails when a document of another space that it reads does not arrive in time, with an error that
// names the document; then the next event is handled. Ready.Wake is exactly that time.
func TestAnEventDoesNotWaitForeverForAForeignDocument(t *testing.T) {
	for _, stream := range []string{"buy", "read"} { // the handler reads it, or a computation that the handler reads
		t.Run(stream, func(t *testing.T) {
			w := newWorld(t)
			h := w.owner("w1", exchange(t).Program, patient)
			var told []ErrorInfo
			h.core.OnError(func(i ErrorInfo) { told = append(told, i) })
			h.deaf = true
			h.now = time.Second
			w.send(home, stream, "e1", nil)
			w.send(home, "set", "e2", map[string]any{"a": 1})
			h.run()
			if until := time.Minute + time.Second; h.last.Wake != until {
				t.Fatalf("the wake is at %s, want %s", h.last.Wake, until)
			}
			h.now = time.Minute
			h.run()
			if got := w.receipts(home); len(got) > 0 {
				t.Fatalf("receipts %v before the time is up", got)
			}
			p, _ := h.core.Inspect().Parked()
			if cause, why := p.Cause(time.Duration.String); cause != inspect.CauseDocument || !strings.Contains(why, "@bank/rate") || !strings.HasSuffix(why, "; the event fails at 1m1s") {
				t.Errorf("the cause is %s: %s", cause, why)
			}
			h.now = time.Minute + time.Second
			h.run()
			if got, want := w.receipts(home), []string{"e1 failed", "e2 handled"}; !slices.Equal(got, want) {
				t.Fatalf("receipts %v, want %v", got, want)
			}
			const want = "document @bank/rate has not arrived within 1m0s"
			if rc := w.receipt(home, "e1"); !strings.HasPrefix(rc.Error, want) {
				t.Errorf("the receipt says %q", rc.Error)
			}
			var err *DocumentError
			if len(told) != 1 || !errors.As(told[0].Err, &err) || told[0].Rejection != ByError || told[0].Event != "e1" {
				t.Errorf("told were %+v", told)
			}
			if h.core.Stats().Attempts != 1 {
				t.Errorf("%d attempts were counted, although the handler of e1 never returned a result", h.core.Stats().Attempts)
			}
		})
	}
}

// Each document has its own limit: the wait for one that arrives late is not added to the wait for the next.
// Nor does the wait of one event count for the next event.
func TestEachForeignDocumentHasItsTime(t *testing.T) {
	w := newWorld(t)
	p := exchange(t)
	h := w.owner("w1", p.Program, patient)
	h.deaf = true
	w.send(home, "both", "e1", nil)
	h.run()
	h.now = 50 * time.Second
	h.core.Mirror("bank", "rate", model.Int(7))
	h.run()
	h.now = 100 * time.Second
	h.run()
	if got := w.receipts(home); len(got) > 0 {
		t.Fatalf("receipts %v, although the second document has been missing for only 50 s", got)
	}
	h.core.Mirror("bank", "fee", model.Int(2))
	h.run()
	if got := w.receipt(home, "e1").Result.String(); got != "9" {
		t.Errorf("the handler saw %s", got)
	}
	w.send(home, "buy", "e2", nil)
	h.run()
	h.now = 150 * time.Second
	h.run()
	if got := w.receipts(home); len(got) != 1 {
		t.Errorf("receipts %v, although the next event has waited for only 50 s", got)
	}
}

// Without a limit the event keeps waiting, and so does an attached runtime: that decision is the owner's.
func TestWithoutABoundAnEventWaitsForAForeignDocument(t *testing.T) {
	for name, enter := range map[string]func(w *world, p *Program) *host{
		"an owner without a bound": func(w *world, p *Program) *host { return w.owner("w1", p) },
		"an attached one with one": func(w *world, p *Program) *host { return w.attached("w1", p, patient) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			h := enter(w, exchange(t).Program)
			h.deaf = true
			w.send(home, "buy", "e1", nil)
			h.run()
			h.now = 24 * time.Hour
			h.run()
			if got := w.receipts(home); len(got) > 0 || h.last.Wake != 0 {
				t.Errorf("receipts %v; the wake is at %s", got, h.last.Wake)
			}
		})
	}
}
