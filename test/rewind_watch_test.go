package test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/model"
)

// errNotThere is the reason for another attempt.
var errNotThere = errors.New("it is not there so far")

// watched has the events of a watch of a count, in order: the count, or the kind of an event without a value.
type watched struct {
	t     *testing.T
	who   string
	news  chan string
	heard []string
}

// watch watches with one of the protocols, until the test ends.
func watch(t *testing.T, who string, follow func(ctx context.Context, tell func(string)) error) *watched {
	t.Helper()
	w := &watched{t: t, who: who, news: make(chan string, 1000)}
	ctx, cancel := context.WithCancel(testContext(t))
	ended := make(chan error, 1)
	go func() { ended <- follow(ctx, func(s string) { w.news <- s }) }() // ends with ctx
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err == nil {
			t.Errorf("%s ended without an error", who)
		}
	})
	return w
}

// until receives events until the wanted one.
func (w *watched) until(want string) {
	w.t.Helper()
	ctx := testContext(w.t)
	for {
		select {
		case s := <-w.news:
			if w.heard = append(w.heard, s); s == want {
				return
			}
		case <-ctx.Done():
			w.t.Fatalf("%s received %v, and not %s", w.who, w.heard, want)
		}
	}
}

func watchAsGo(t *testing.T, c *settle.Client, space, doc string) *watched {
	t.Helper()
	return watch(t, "a Go program", func(ctx context.Context, tell func(string)) error {
		for u, err := range c.Space(space).Watch(ctx, doc) {
			if err != nil {
				return err
			}
			tell(u.Value.String())
		}
		return ctx.Err()
	})
}

func watchAsAnyClient(t *testing.T, d *deployment, space, doc string) *watched {
	t.Helper()
	c := live.Client{Bus: d.Bus()}
	return watch(t, "a live query", func(ctx context.Context, tell func(string)) error {
		return c.Watch(ctx, live.Watch{Space: space, Document: doc}, func(e live.Event) {
			switch e.Kind {
			case live.Value:
				tell(string(e.Data))
			case live.Rewound:
				tell(string(e.Kind))
			}
		})
	})
}

// A watch that stays open delivers the present document after its store has gone back, although that is older
// than the last one, and then later values.
func TestRewind_AWatchThatStaysGoesBackWithTheStore(t *testing.T) {
	t.Parallel()
	m := startTimeMachine(t)
	d := deploy(t, m.config())
	c := d.Client()
	native, anybody := watchAsGo(t, c, "a", "departed"), watchAsAnyClient(t, d, "a", "departed")
	sendAll(t, c, 1, 8)
	native.until("8")
	anybody.until("8")
	old := m.copy()
	sendAll(t, c, 9, 12)
	native.until("12")
	anybody.until("12")
	m.goBack(old)
	native.until("8")
	anybody.until(string(live.Rewound))
	anybody.until("8")
	sendAll(t, c, 13, 14)
	native.until("10")
	anybody.until("10")
}

// A call that waits for a worker returns its receipt, although its event was lost in the meantime with
// the end of the store.
func TestRewind_ACallUnderWaySendsALostEventAgain(t *testing.T) {
	t.Parallel()
	m := startTimeMachine(t)
	cfg := m.config()
	cfg.Workers = -1
	d := deploy(t, cfg)
	c, ctx := d.Client(), testContext(t)
	old := m.copy()
	type answer struct {
		rc  *model.Receipt
		err error
	}
	called := make(chan answer, 1)
	go func() { // ends with ctx
		rc, err := c.Call(ctx, flight(1, "a", "b"))
		called <- answer{rc, err}
	}()
	persistently(ctx, t, "find the event of the call", func(ctx context.Context) error {
		_, there, err := d.Bus().FindEvent(ctx, "a", "depart", "f1")
		if err == nil && !there {
			err = errNotThere
		}
		return err
	})
	sendAll(t, c, 2, 2) // it is acknowledged behind the event of the call
	m.goBack(old)
	if _, err := d.AddWorker(ctx); err != nil {
		t.Fatal(err)
	}
	if a := <-called; a.err != nil || a.rc.Outcome != model.Handled {
		t.Errorf("the call: %+v, %v", a.rc, a.err)
	}
	eventually(t, c, "a", "departed", 1)
	once(t, readLog(t, d.Bus(), "a"))
}

// An attachment has the former state of the space in memory, so it ends, with the reason.
func TestRewind_AnAttachmentEnds(t *testing.T) {
	t.Parallel()
	m := startTimeMachine(t)
	d := deploy(t, m.config())
	c := d.Client()
	sendAll(t, c, 1, 8)
	eventually(t, c, "a", "departed", 8)
	old := m.copy()
	sendAll(t, c, 9, 10)
	eventually(t, c, "a", "departed", 10)
	a, err := c.Space("a").Attach(testContext(t), settle.AttachConfig{ID: "editor", Program: relay()})
	if err != nil {
		t.Fatal(err)
	}
	m.goBack(old)
	select {
	case <-a.Done():
	case <-testContext(t).Done():
		t.Fatal("it continues from a lost revision")
	}
	err = a.Transact(testContext(t), "editor", func(tx *settle.Tx) error { tx.Set("note", "late"); return nil })
	if !errors.Is(err, model.ErrRewound) {
		t.Errorf("a transaction after that: %v", err)
	}
	if err := a.Close(testContext(t)); err != nil {
		t.Error(err)
	}
}

// A document gets a revision again that a client has, with other content, before a worker is running again. The
// client is notified, whether its watch continues or it resumes from a stored Known; with a revision alone it
// is not.
func TestRewind_AWatchThatComesBackWithARevisionThatWasGivenOutAgain(t *testing.T) {
	t.Parallel()
	m := startTimeMachine(t)
	d := deploy(t, m.config())
	c, ctx := d.Client(), testContext(t)
	depart := func(flight int, departed int64) {
		sendAll(t, c, flight, flight)
		eventually(t, c, "a", "departed", departed)
	}
	stays, noted := watchWithResume(t, d, live.Known{})
	depart(1, 1)
	stays.until("1")
	old := m.copy()
	depart(2, 2)
	depart(3, 3)
	stays.until("3")
	had := noted()
	d.KillWorker(d.Workers()[0])
	m.goBack(old)
	if _, err := d.AddWorker(ctx); err != nil {
		t.Fatal(err)
	}
	depart(4, 2) // its commit and that of the takeover stand where those of flights 2 and 3 stood
	now, err := history.Read(ctx, d.Bus(), "a", "departed")
	if err != nil || now.Seq != had.Revision {
		t.Fatalf("the document has revision %d, and had %d: the test proves nothing (%v)", now.Seq, had.Revision, err)
	}
	comes, _ := watchWithResume(t, d, had)
	knowsLess, _ := watchWithResume(t, d, live.At(had.Revision))
	for _, w := range []*watched{stays, comes} {
		w.until(string(live.Rewound))
		w.until("2")
	}
	depart(5, 3)
	for _, w := range []*watched{stays, comes, knowsLess} {
		w.until("3")
	}
	if len(knowsLess.heard) != 1 {
		t.Errorf("a watch from a revision received %v", knowsLess.heard)
	}
}

// watchWithResume watches how many flights have departed from a, from what is known on, and returns what the watch may be resumed
// from.
func watchWithResume(t *testing.T, d *deployment, from live.Known) (w *watched, noted func() live.Known) {
	t.Helper()
	var mu sync.Mutex
	var last live.Known
	w = watch(t, fmt.Sprint("a live query from ", from), func(ctx context.Context, tell func(string)) error {
		return (&live.Client{Bus: d.Bus()}).Watch(ctx, live.Watch{Space: "a", Document: "departed", From: from}, func(e live.Event) {
			switch e.Kind {
			case live.Value:
				mu.Lock()
				last = e.Known()
				mu.Unlock()
				tell(string(e.Data))
			case live.Rewound:
				tell(string(e.Kind))
			}
		})
	})
	return w, func() live.Known {
		mu.Lock()
		defer mu.Unlock()
		return last
	}
}
