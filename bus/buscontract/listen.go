package buscontract

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/settlehq/settle/model"
)

var listenChecks = []check{
	{"the parts of an answer arrive in order, each at its listener", partsArrive},
	{"an answer can end with an error", answerEnds},
	{"an answer of many parts delays no other", answersGoOnBeside},
	{"a service is notified when its listener is gone", listenerGone},
	{"a request for one answer gets the first part", askOpen},
	{"a listener gets a single answer", listenToOne},
	{"a part that is too large is an error", oversizePart},
	{"listening after the end returns ErrStopped", listenAfterTheEnd},
}

// counting returns a service that sends the numbers up to the requested one, then only heartbeats, until its
// listener is gone.
func (w *world) counting(name string) model.Service {
	return model.Service{Name: "test-" + name, Endpoints: []model.Endpoint{{
		Name: "count",
		Open: func(q []byte, to model.Outlet) {
			n, err := strconv.Atoi(string(q))
			go func() { // ends with the listener, or with the test
				defer to.Close()
				if err != nil {
					_ = to.Send(model.Part{Err: &model.ServiceError{Code: model.CodeBadRequest, Text: "no\nnumber"}})
					return
				}
				for i := range n {
					_ = to.Send(model.Part{Header: map[string]string{"Settle-Of": name}, Data: []byte(strconv.Itoa(i))})
				}
				beat := time.NewTicker(10 * time.Millisecond)
				defer beat.Stop()
				for {
					select {
					case <-to.Gone():
						w.gone <- name
						return
					case <-w.ctx.Done():
						return
					case <-beat.C:
						_ = to.Send(model.Part{Header: map[string]string{"Settle-Beat": "1"}})
					}
				}
			}()
		},
	}}}
}

func recordParts(w *world, c Client, question string) *recording[model.Part] {
	return record(w, func(ctx context.Context, deliver func(model.Part)) error {
		return c.Listen(ctx, "count", []byte(question), deliver)
	})
}

// said waits for n parts with data and checks them.
func (w *world) said(r *recording[model.Part], of string, n int) {
	w.Helper()
	for i := 0; i < n; {
		p := r.next()
		if p.Header["Settle-Beat"] != "" {
			continue
		}
		w.equal("part", p.Header["Settle-Of"]+" "+string(p.Data), of+" "+strconv.Itoa(i))
		i++
	}
}

func partsArrive(w *world) {
	a, b, c := w.connect("a"), w.connect("b"), w.connect("c")
	w.serve(w.ctx, a, w.counting("one"))
	first, second, own := recordParts(w, b, "100"), recordParts(w, c, "200"), recordParts(w, a, "3")
	w.said(first, "one", 100)
	w.said(second, "one", 200)
	w.said(own, "one", 3)
}

func answerEnds(w *world) {
	a, b := w.connect("a"), w.connect("b")
	if err := b.Listen(w.ctx, "count", nil, nil); !errors.Is(err, model.ErrNoResponder) {
		w.Errorf("listen: %v, want ErrNoResponder", err)
	}
	w.serve(w.ctx, a, w.counting("one"))
	var said *model.ServiceError
	if err := b.Listen(w.ctx, "count", []byte("many"), nil); !errors.As(err, &said) || said.Code != model.CodeBadRequest {
		w.Errorf("listen: %v, want code %d", err, model.CodeBadRequest)
	}
	var name *model.NameError
	if err := b.Listen(w.ctx, "a.b.c", nil, nil); !errors.As(err, &name) {
		w.Errorf("listen: %v, want a NameError", err)
	}
}

func answersGoOnBeside(w *world) {
	a, b := w.connect("a"), w.connect("b")
	w.serve(w.ctx, a, w.counting("one"))
	var all []*recording[model.Part]
	for range 20 {
		all = append(all, recordParts(w, b, "5"))
	}
	for _, r := range all {
		w.said(r, "one", 5)
	}
}

func listenerGone(w *world) {
	a, b, c := w.connect("a"), w.connect("b"), w.connect("c")
	w.serve(w.ctx, a, w.counting("one"))
	leaves, dies, stays := recordParts(w, b, "5"), recordParts(w, c, "5"), recordParts(w, a, "5")
	w.said(leaves, "one", 5)
	w.said(dies, "one", 5)
	w.said(stays, "one", 5)
	leaves.stop()
	w.awaitGone()
	c.Kill()
	w.awaitGone()
	w.equal("beat", stays.next().Header["Settle-Beat"], "1")
	if n := len(w.gone); n > 0 {
		w.Errorf("%d more are gone, and one listens", n)
	}
}

func (w *world) awaitGone() {
	w.Helper()
	select {
	case <-w.gone:
	case <-w.ctx.Done():
		w.Fatal("the service was not notified that its listener is gone")
	}
}

func askOpen(w *world) {
	a, b := w.connect("a"), w.connect("b")
	w.serve(w.ctx, a, w.counting("one"))
	w.equal("answer", w.ask(b, "count", "3"), "0")
	w.equal("answer", w.ask(b, "count", "1"), "0")
}

func listenToOne(w *world) {
	a, b := w.connect("a"), w.connect("b")
	s, _ := echo("one")
	w.serve(w.ctx, a, s)
	r := record(w, func(ctx context.Context, deliver func(model.Part)) error {
		return b.Listen(ctx, "echo", []byte("hello"), deliver)
	})
	w.equal("answer", string(r.next().Data), "one: hello")
	r.stop()
	var said *model.ServiceError
	if err := b.Listen(w.ctx, "fail", []byte("missing"), nil); !errors.As(err, &said) || said.Code != model.CodeNotFound {
		w.Errorf("listen: %v, want code %d", err, model.CodeNotFound)
	}
}

func oversizePart(w *world) {
	a, b := w.connect("a"), w.connect("b")
	errs := make(chan error, 1)
	w.serve(w.ctx, a, model.Service{Name: "test", Endpoints: []model.Endpoint{{
		Name: "count",
		Open: func(_ []byte, to model.Outlet) {
			go func() { // ends at once
				defer to.Close()
				errs <- to.Send(model.Part{Data: make([]byte, a.MaxPayload()+1)})
				_ = to.Send(model.Part{Header: map[string]string{"Settle-Of": "one"}, Data: []byte("0")})
			}()
		},
	}}})
	w.said(recordParts(w, b, ""), "one", 1)
	if err := <-errs; !errors.Is(err, model.ErrTooLarge) {
		w.Errorf("say: %v, want ErrTooLarge", err)
	}
	if err := b.Listen(w.ctx, "count", make([]byte, b.MaxPayload()+1), nil); !errors.Is(err, model.ErrTooLarge) {
		w.Errorf("listen: %v, want ErrTooLarge", err)
	}
}

func listenAfterTheEnd(w *world) {
	for name, end := range map[string]func(Client){"close": Client.Close, "kill": Client.Kill} {
		c, d := w.connect(name), w.connect(name+"-later")
		w.serve(w.ctx, w.connect(name+"-answers"), w.counting("one"))
		end(c)
		w.wantStopped("listen", c.Listen(w.ctx, "count", []byte("1"), nil))
		r := recordParts(w, d, "1")
		w.said(r, "one", 1)
		end(d)
		<-r.ended
		w.wantStopped("listen", r.err)
	}
}
