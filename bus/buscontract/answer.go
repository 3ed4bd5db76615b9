package buscontract

import (
	"sync/atomic"

	"github.com/settlehq/settle/model"
)

// answer receives what a callback is called with. At the end of the test it checks that the callback was called
// exactly once.
type answer[T any] struct {
	w     *world
	what  string
	calls atomic.Int32
	got   chan result[T]
}

type result[T any] struct {
	value T
	err   error
}

func newAnswer[T any](w *world, what string) *answer[T] {
	a := &answer[T]{w: w, what: what, got: make(chan result[T], 1)}
	w.Cleanup(a.checkOnce)
	return a
}

// done is the callback.
func (a *answer[T]) done(value T, err error) {
	if a.calls.Add(1) == 1 {
		a.got <- result[T]{value, err}
	}
}

func (a *answer[T]) checkOnce() {
	if n := a.calls.Load(); n > 1 {
		a.w.Errorf("%s: the callback was called %d times", a.what, n)
	}
}

// wait returns the answer; it may be called repeatedly.
func (a *answer[T]) wait() (T, error) {
	a.w.Helper()
	select {
	case r := <-a.got:
		a.got <- r
		return r.value, r.err
	case <-a.w.ctx.Done():
		a.w.Fatalf("%s: the callback was never called", a.what)
		panic("unreachable")
	}
}

// pending reports that the callback has not been called.
func (a *answer[T]) pending() bool { return a.calls.Load() == 0 }

// commit returns an append that a runtime makes of its n-th commit.
func commit(space, id string, expect uint64) model.Append {
	return model.Append{Space: space, ID: id, Expect: expect, Data: []byte("data of " + id)}
}

func (w *world) startAppend(c Client, a model.Append) *answer[uint64] {
	got := newAnswer[uint64](w, "append "+a.ID)
	c.Append(a, got.done)
	return got
}

func (w *world) append(c Client, a model.Append) (uint64, error) {
	w.Helper()
	return w.startAppend(c, a).wait()
}

func (w *world) mustAppend(c Client, a model.Append) uint64 {
	w.Helper()
	seq, err := w.append(c, a)
	if err != nil {
		w.Fatalf("append %s: %v", a.ID, err)
	}
	return seq
}

// chain appends a commit for each id, each on top of the one before it.
func (w *world) chain(c Client, space string, expect uint64, ids ...string) uint64 {
	w.Helper()
	for _, id := range ids {
		expect = w.mustAppend(c, commit(space, id, expect))
	}
	return expect
}

// event returns an event whose payload contains its id.
func event(space, id string) model.Message {
	return model.Message{Space: space, Stream: "add", ID: id, Payload: []byte("payload of " + id)}
}

func (w *world) startSend(c Client, m model.Message) *answer[model.SendResult] {
	got := newAnswer[model.SendResult](w, "send "+m.ID)
	c.Send(m, got.done)
	return got
}

func (w *world) send(c Client, m model.Message) (model.SendResult, error) {
	w.Helper()
	return w.startSend(c, m).wait()
}

func (w *world) mustSend(c Client, m model.Message) model.SendResult {
	w.Helper()
	r, err := w.send(c, m)
	if err != nil {
		w.Fatalf("send %s: %v", m.ID, err)
	}
	return r
}

// sendAll sends an event for each id, one after the other.
func (w *world) sendAll(c Client, space string, ids ...string) {
	w.Helper()
	for _, id := range ids {
		w.mustSend(c, event(space, id))
	}
}
