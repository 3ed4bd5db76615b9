package buscontract

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/settlehq/settle/model"
)

var serviceChecks = []check{
	{"a request without a service returns ErrNoResponder", nobodyAnswersIt},
	{"an answer reaches its caller", answered},
	{"an error reaches its caller with its code", answeredByError},
	{"one of several servers of an endpoint answers, and another when it is gone", oneAnswers},
	{"a service ends with its context", serviceEnds},
	{"a service answers again after a disconnection", serviceAfterDisconnection},
	{"a service may use the bus while it answers", answerAsks},
	{"a question or an answer that is too large is an error", oversizeAnswer},
	{"a question ends with its context", questionEnds},
	{"a request in the name of a principal reaches an endpoint that takes such, with the name", askByPrincipal},
	{"requests after the end return ErrStopped", askAfterTheEnd},
}

// echo returns a service that answers with its name and the request.
func echo(name string) (model.Service, *atomic.Int64) {
	var asked atomic.Int64
	return model.Service{Name: "test-" + name, Description: "A test.", Endpoints: []model.Endpoint{{
		Name: "echo", Description: "Returns its name and the request.",
		Answer: func(q []byte) ([]byte, error) {
			asked.Add(1)
			return []byte(name + ": " + string(q)), nil
		},
	}, {
		Name: "fail", Description: "Fails.",
		Answer: func(q []byte) ([]byte, error) {
			if string(q) == "missing" {
				return nil, &model.ServiceError{Code: model.CodeNotFound, Text: "there is none"}
			}
			return nil, errors.New("it went\nwrong")
		},
	}}}, &asked
}

func (w *world) serve(ctx context.Context, c Client, s model.Service) {
	w.Helper()
	w.must(c.Serve(ctx, s))
}

func (w *world) ask(c Client, endpoint, question string) string {
	w.Helper()
	reply, err := c.Ask(w.ctx, endpoint, []byte(question))
	w.must(err)
	return string(reply)
}

func askByPrincipal(w *world) {
	a, b := w.connect("a"), w.connect("b")
	answer := func(principal string, q []byte, to model.Outlet) {
		_ = to.Send(model.Part{Data: []byte(principal + " asks " + string(q))}) // the requester has a timeout
		to.Close()
	}
	w.serve(w.ctx, a, model.Service{Name: "test", Endpoints: []model.Endpoint{
		{Name: "open", Open: func(q []byte, to model.Outlet) { answer("no principal", q, to) }, OpenBy: answer},
		{Name: "closed", Open: func(q []byte, to model.Outlet) { answer("no principal", q, to) }},
	}})
	for endpoint, want := range map[string]string{"open": "no principal asks it", "open.alice": "alice asks it", "closed": "no principal asks it"} { // any order: each on its own
		if got := w.ask(b, endpoint, "it"); got != want {
			w.Errorf("%s: %q, want %q", endpoint, got, want)
		}
	}
	if _, err := b.Ask(w.ctx, "closed.alice", nil); !errors.Is(err, model.ErrNoResponder) {
		w.Errorf("an endpoint that takes no principals: %v, want ErrNoResponder", err)
	}
}

func nobodyAnswersIt(w *world) {
	c := w.connect("a")
	if _, err := c.Ask(w.ctx, "echo", nil); !errors.Is(err, model.ErrNoResponder) {
		w.Errorf("ask: %v, want ErrNoResponder", err)
	}
	var name *model.NameError
	if _, err := c.Ask(w.ctx, "a.b.c", nil); !errors.As(err, &name) {
		w.Errorf("ask: %v, want a NameError", err)
	}
}

func answered(w *world) {
	a, b := w.connect("a"), w.connect("b")
	s, _ := echo("one")
	w.serve(w.ctx, a, s)
	for _, c := range []Client{a, b} {
		w.equal("answer", w.ask(c, "echo", "hello"), "one: hello")
		w.equal("answer to an empty question", w.ask(c, "echo", ""), "one: ")
	}
}

func answeredByError(w *world) {
	a, b := w.connect("a"), w.connect("b")
	s, _ := echo("one")
	w.serve(w.ctx, a, s)
	for question, want := range map[string]model.ServiceError{
		"missing": {Code: model.CodeNotFound, Text: "there is none"},
		"":        {Code: model.CodeFailed, Text: "it went"},
	} {
		_, err := b.Ask(w.ctx, "fail", []byte(question))
		var said *model.ServiceError
		if !errors.As(err, &said) || said.Code != want.Code || !strings.HasPrefix(said.Text, want.Text) {
			w.Errorf("ask %q: %v, want %v", question, err, &want)
		}
	}
}

func oneAnswers(w *world) {
	clients := map[string]Client{}
	asked := map[string]*atomic.Int64{}
	for _, name := range []string{"one", "two", "three"} {
		s, n := echo(name)
		clients[name], asked[name] = w.connect(name), n
		w.serve(w.ctx, clients[name], s)
	}
	c := w.connect("asker")
	for len(clients) > 0 {
		before := asked["one"].Load() + asked["two"].Load() + asked["three"].Load()
		name, _, _ := strings.Cut(w.askAgain(c, "echo", "hello"), ":")
		after := asked["one"].Load() + asked["two"].Load() + asked["three"].Load()
		if after != before+1 || clients[name] == nil {
			w.Fatalf("%s answered, and %d were asked", name, after-before)
		}
		clients[name].Kill()
		delete(clients, name)
	}
	w.awaitNobody(c, "echo")
}

// askAgain asks until there is an answer: a server may take a while to notice that a process is gone, and a
// request to it is lost meanwhile.
func (w *world) askAgain(c Client, endpoint, question string) string {
	w.Helper()
	for {
		ctx, cancel := context.WithTimeout(w.ctx, time.Second)
		reply, err := c.Ask(ctx, endpoint, []byte(question))
		cancel()
		if err == nil {
			return string(reply)
		}
		if w.ctx.Err() != nil {
			w.Fatalf("ask: %v", err)
		}
	}
}

func (w *world) awaitNobody(c Client, endpoint string) {
	w.Helper()
	for {
		ctx, cancel := context.WithTimeout(w.ctx, time.Second)
		_, err := c.Ask(ctx, endpoint, nil)
		cancel()
		if errors.Is(err, model.ErrNoResponder) {
			return
		}
		if w.ctx.Err() != nil {
			w.Fatalf("ask: %v, want ErrNoResponder", err)
		}
	}
}

func serviceEnds(w *world) {
	a, b := w.connect("a"), w.connect("b")
	s, _ := echo("one")
	ctx, cancel := context.WithCancel(w.ctx)
	w.serve(ctx, a, s)
	w.equal("answer", w.ask(b, "echo", "hello"), "one: hello")
	cancel()
	w.awaitNobody(b, "echo")
	s, _ = echo("again")
	w.serve(w.ctx, a, s)
	w.equal("answer", w.ask(b, "echo", "hello"), "again: hello")
}

func serviceAfterDisconnection(w *world) {
	a, b := w.connect("a"), w.connect("b")
	s, _ := echo("one")
	w.serve(w.ctx, a, s)
	w.Disconnect(w.T)
	w.Reconnect(w.T)
	w.equal("answer", w.askAgain(b, "echo", "hello"), "one: hello")
}

func answerAsks(w *world) {
	c := w.connect("a")
	head := w.chain(c, cart, 0, "a/0/1", "a/0/2")
	w.serve(w.ctx, c, model.Service{Name: "test", Endpoints: []model.Endpoint{{
		Name: "head",
		Answer: func(q []byte) ([]byte, error) {
			n, err := c.Head(w.ctx, string(q))
			return fmt.Append(nil, n), err
		},
	}}})
	w.equal("answer", w.ask(c, "head", cart), fmt.Sprint(head))
}

func oversizeAnswer(w *world) {
	c := w.connect("a")
	w.serve(w.ctx, c, model.Service{Name: "test", Endpoints: []model.Endpoint{{
		Name: "large",
		Answer: func([]byte) ([]byte, error) {
			return make([]byte, c.MaxPayload()+1), nil
		},
	}}})
	_, err := c.Ask(w.ctx, "large", nil)
	var said *model.ServiceError
	if !errors.As(err, &said) || said.Code != model.CodeTooLarge {
		w.Errorf("ask: %v, want an error with code %d", err, model.CodeTooLarge)
	}
	if _, err := c.Ask(w.ctx, "large", make([]byte, c.MaxPayload()+1)); !errors.Is(err, model.ErrTooLarge) {
		w.Errorf("ask: %v, want ErrTooLarge", err)
	}
}

func questionEnds(w *world) {
	a, b := w.connect("a"), w.connect("b")
	arrived, hold, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	arrive, end := sync.OnceFunc(func() { close(arrived) }), sync.OnceFunc(func() { close(ended) })
	w.serve(w.ctx, a, model.Service{Name: "test", Endpoints: []model.Endpoint{{
		Name:   "never",
		Answer: func([]byte) ([]byte, error) { arrive(); <-hold; end(); return nil, nil },
	}}})
	ask := func(ctx context.Context) error { _, err := b.Ask(ctx, "never", nil); return err }
	for reached := false; !reached; { // the fault may end before the request is sent
		if err := w.briefly(ask); err == nil {
			w.Fatal("a question that was not answered was a success")
		}
		select {
		case <-arrived:
			reached = true
		case <-w.ctx.Done():
			w.Fatal("the question never arrives")
		default:
		}
	}
	close(hold)
	w.await("the answer", ended)
	w.Disconnect(w.T)
	if err := w.briefly(ask); err == nil {
		w.Error("a question was answered with no server there")
	}
	w.Reconnect(w.T)
}

func askAfterTheEnd(w *world) {
	for name, end := range map[string]func(Client){"close": Client.Close, "kill": Client.Kill} {
		c := w.connect(name)
		s, _ := echo("one")
		end(c)
		w.wantStopped("serve", c.Serve(w.ctx, s))
		_, err := c.Ask(w.ctx, "echo", nil)
		w.wantStopped("ask", err)
	}
}
