package buscontract

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/settlehq/settle/model"
)

var stopChecks = []check{
	{"a callback may take a lock that its caller holds", callbacksAreNotNested},
	{"pending calls return ErrStopped when the client is closed", func(w *world) { pendingEnds(w, Client.Close) }},
	{"pending calls return ErrStopped when the client is killed", func(w *world) { pendingEnds(w, Client.Kill) }},
	{"an append in doubt returns ErrStopped when the client is killed", stoppedInDoubt},
	{"every call after the end returns ErrStopped", askedAfterTheEnd},
	{"followers end with their client", followersEnd},
	{"ending a client twice does no harm", endingTwice},
	{"ending a busy client answers every call once and truly", endedInTheMidst},
	{"clients end independently", othersGoOn},
	{"a call ends with its context when no server is there", callsEndWithContext},
}

func (w *world) wantStopped(what string, err error) {
	w.Helper()
	if !errors.Is(err, model.ErrStopped) {
		w.Errorf("%s: %v, want ErrStopped", what, err)
	}
}

// callbacksAreNotNested: a caller that holds a lock while it appends, and takes it
// in the callback, must not depend on how soon the answer is known.
func callbacksAreNotNested(w *world) {
	c := w.connect("a")
	w.unnested(c, cart)
	w.unnested(c, "not.a.name")
	w.Disconnect(w.T)
	w.unnested(c, space(0, 1))
	c.Kill()
	w.unnested(c, space(0, 2))
	w.Reconnect(w.T)
}

func (w *world) unnested(c Client, space string) {
	w.Helper()
	var mu sync.Mutex
	returned := make(chan struct{})
	go func() { // ends when the calls have returned
		mu.Lock()
		defer mu.Unlock()
		c.Append(commit(space, "a/0/1", 0), func(uint64, error) { mu.Lock(); defer mu.Unlock() })
		c.Send(event(space, "e1"), func(model.SendResult, error) { mu.Lock(); defer mu.Unlock() })
		close(returned)
	}()
	w.await("a call that waits for its own callback", returned)
}

func pendingEnds(w *world, end func(Client)) {
	c := w.connect("a")
	w.chain(c, cart, 0, "a/0/1")
	w.Disconnect(w.T)
	var appends []*answer[uint64]
	var sends []*answer[model.SendResult]
	for i := range 20 {
		appends = append(appends, w.startAppend(c, commit(space(0, i+1), "a/0/2", 0)))
		sends = append(sends, w.startSend(c, event(cart, fmt.Sprintf("e%d", i))))
	}
	w.nobodyAnswers(c)
	end(c)
	for i := range appends {
		_, err := appends[i].wait()
		w.wantStopped("append", err)
		_, err = sends[i].wait()
		w.wantStopped("send", err)
	}
	w.Reconnect(w.T)
	w.wantLog(w.connect("b"), cart, "a/0/1")
}

func stoppedInDoubt(w *world) {
	c := w.connect("a")
	at := w.holdAfter(c, Append, DropAck)
	a := w.startAppend(c, commit(cart, "a/0/1", 0))
	at.await()
	killed := make(chan struct{})
	go func() { c.Kill(); close(killed) }() // ends with the client
	at.over()
	w.await("the end of the client", killed)
	// The client may have repeated the request just before the crash, and know the answer.
	if _, err := a.wait(); err != nil {
		w.wantStopped("append", err)
	}
	w.wantLog(w.connect("b"), cart, "a/0/1")
}

func askedAfterTheEnd(w *world) {
	for name, end := range map[string]func(Client){"close": Client.Close, "kill": Client.Kill} {
		c := w.connect(name)
		w.chain(c, space(0, 1), w.head(c, space(0, 1)), name+"/0/1")
		end(c)
		_, err := w.append(c, commit(cart, name+"/0/2", 0))
		w.wantStopped("append", err)
		_, err = w.send(c, event(cart, name))
		w.wantStopped("send", err)
		_, err = c.Head(w.ctx, cart)
		w.wantStopped("head", err)
		_, err = c.ReadLog(w.ctx, cart, 0, 1)
		w.wantStopped("read log", err)
		_, err = c.ReadLane(w.ctx, cart, 0, 1)
		w.wantStopped("read lane", err)
		_, err = c.LaneEnd(w.ctx, 0)
		w.wantStopped("lane end", err)
		_, err = c.LoadState(w.ctx, cart)
		w.wantStopped("load", err)
		w.wantStopped("save", w.save(c, cart, nil, doc("d", `1`, 1)))
		_, err = c.LoadPosition(w.ctx, 0, "p")
		w.wantStopped("load position", err)
		w.wantStopped("save position", c.SavePosition(w.ctx, 0, "p", 1))
		w.wantStopped("announce", c.Announce(w.ctx, model.Member{ID: "w"}))
		_, err = c.Ping(w.ctx, "w")
		w.wantStopped("ping", err)
		w.wantStopped("answer pings", c.AnswerPings(w.ctx, "w"))
		w.wantStopped("observe", c.Observe(model.Lease{Space: cart, Doc: "d", Watcher: "w"}))
		w.wantStopped("call roll", c.CallRoll(0))
		w.wantStopped("follow space", c.FollowSpace(w.ctx, cart, 0, func(model.LogEntry) {}))
	}
	b := w.connect("b")
	w.wantLog(b, cart)
	w.wantLane(b, cart)
}

func followersEnd(w *world) {
	for name, end := range map[string]func(Client){"close": Client.Close, "kill": Client.Kill} {
		c := w.connect(name)
		ofSpace, ofLog, ofLane := recordSpace(w, c, cart, 0), recordLog(w, c, 0, 0), recordLane(w, c, 0, 0)
		leases, rolls, members := recordLeases(w, c, 0), recordRolls(w, c), recordMembers(w, c)
		w.await("readiness", members.ready)
		end(c)
		for what, f := range map[string]interface {
			awaitEnd()
			reason() error
		}{
			"space": ofSpace, "log": ofLog, "lane": ofLane, "leases": leases, "roll calls": rolls, "members": members,
		} {
			f.awaitEnd()
			w.wantStopped("follow "+what, f.reason())
		}
	}
}

func endingTwice(w *world) {
	orders := map[string][]func(Client){
		"close, close": {Client.Close, Client.Close},
		"kill, kill":   {Client.Kill, Client.Kill},
		"close, kill":  {Client.Close, Client.Kill},
		"kill, close":  {Client.Kill, Client.Close},
	}
	for name, ends := range orders {
		c := w.connect(name[:1])
		a := w.startAppend(c, commit(cart, "a/0/1", 0))
		for _, end := range ends {
			end(c)
		}
		_, _ = a.wait() // that it is answered once is checked for every append
	}
}

// endedInTheMidst: every answer is true, even at the last moment. A successful append is in the log, a refused
// one is not, and a stopped one may be either.
func endedInTheMidst(w *world) {
	reader := w.connect("reader")
	for i, end := range []func(Client){Client.Close, Client.Kill} {
		c := w.connect(fmt.Sprintf("c%d", i))
		answers := map[string]*answer[uint64]{}
		for n := range 60 {
			s := space(i, n)
			answers[s] = w.startAppend(c, commit(s, "c/0/1", 0))
			if n == 30 {
				_, _ = answers[space(i, 0)].wait()
				go end(c) // ends when the client has
			}
		}
		for s, a := range answers {
			seq, err := a.wait()
			if err == nil {
				w.equal("head of "+s, w.head(reader, s), seq)
				continue
			}
			w.wantStopped("append", err)
		}
	}
}

func othersGoOn(w *world) {
	a, b := w.connect("a"), w.connect("b")
	r := recordSpace(w, b, cart, 0)
	head := w.chain(a, cart, 0, "a/0/1")
	a.Kill()
	w.chain(b, cart, head, "b/0/1")
	w.equal("followed", entryIDs(r.take(2)), []string{"a/0/1", "b/0/1"})
}

func callsEndWithContext(w *world) {
	c := w.connect("a")
	w.Disconnect(w.T)
	calls := map[string]func(context.Context) error{
		"head":     func(ctx context.Context) error { _, err := c.Head(ctx, cart); return err },
		"read log": func(ctx context.Context) error { _, err := c.ReadLog(ctx, cart, 0, 1); return err },
		"load":     func(ctx context.Context) error { _, err := c.LoadState(ctx, cart); return err },
		"save": func(ctx context.Context) error {
			return c.SaveState(ctx, cart, []model.StateDoc{doc("d", `1`, 1)}, nil)
		},
		"announce": func(ctx context.Context) error { return c.Announce(ctx, model.Member{ID: "w"}) },
		"lane end": func(ctx context.Context) error { _, err := c.LaneEnd(ctx, 0); return err },
	}
	for name, call := range calls {
		if err := w.briefly(call); err == nil {
			w.Errorf("%s succeeded with no server there", name)
		}
	}
	w.Reconnect(w.T)
	w.head(c, cart)
}

// brief is how long a call without a server may take: long enough for a wrong answer to arrive.
const brief = 50 * time.Millisecond

// briefly gives a call a moment to succeed, and then ends it.
func (w *world) briefly(call func(context.Context) error) error {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, brief)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- call(ctx) }() // ends with ctx
	select {
	case err := <-ended:
		return err
	case <-w.ctx.Done():
		w.Fatal("a call does not end with its context")
		return nil
	}
}

// nobodyAnswers checks that the client is cut off. Meanwhile a wrong answer to one of its other requests would
// arrive.
func (w *world) nobodyAnswers(c Client) {
	w.Helper()
	err := w.briefly(func(ctx context.Context) error { _, err := c.Head(ctx, cart); return err })
	if err == nil {
		w.Fatal("the head was read with no server there")
	}
}
