package settle_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/model"
)

// passing returns a program whose stream credit is internal: pay sends on it, and later does so by a timer.
func passing() *settle.Program {
	secret := settle.NewStream[int]("credit").Internal()
	p := counter()
	secret.Handle(p, func(tx *settle.Tx, n int) error {
		was, _ := tx.Get("n").AsInt()
		tx.Set("n", was+int64(n))
		return nil
	})
	p.Handle("pay", func(tx *settle.Tx, _ *settle.Event) (settle.Value, error) {
		secret.Send(tx, settle.To("bob"), 5)
		return settle.Value{}, nil
	})
	return p.Handle("later", func(tx *settle.Tx, _ *settle.Event) (settle.Value, error) {
		secret.SetTimer(tx, "payday", tx.Now().Add(time.Hour), 7)
		return settle.Value{}, nil
	})
}

// Of an internal stream, the owner handles what spaces and timers send, and rejects each event of a client, with or without a principal, at once or later, with
// headers that claim that a space has sent it, and redriven. It becomes no dead letter.
func TestInternal_TheOwnerRejectsEventsOfClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start("w1", passing(), nil)
		w.Coordinator()
		c, b := w.client("c", nil)
		bob := c.Space("bob")
		for _, id := range []string{"plain", "alice=named", "delayed", "forged", "plain:r1"} {
			m := model.Message{Space: "bob", Stream: "credit", ID: id, Payload: []byte("100")}
			switch id {
			case "delayed":
				m.NotBefore = time.Now().Add(time.Minute).UnixMilli()
			case "forged":
				m.Position, m.Term = 1, 1
			}
			stored := make(chan error, 1)
			b.Send(m, func(_ model.SendResult, err error) { stored <- err })
			if err := <-stored; err != nil {
				t.Fatal(err)
			}
			rc, err := bob.Await(t.Context(), "credit", settle.ID(id))
			if err != nil || rc.Outcome != model.Rejected || rc.Code != model.InternalStream || !strings.Contains(rc.Error, "only handlers and timers of spaces send on stream credit") {
				t.Errorf("%s: %+v, %v", id, rc, err)
			}
		}
		for _, stream := range []string{"pay", "later"} {
			if _, err := c.Space("ann").WaitTree(t.Context(), stream, mustSend(t, c, "ann", stream)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		for name, want := range map[string]int64{"bob": 5, "ann": 7} {
			v, _, err := c.Space(name).Get(t.Context(), "n")
			if n, _ := v.AsInt(); err != nil || n != want {
				t.Errorf("%s has %v, %v; want %d", name, v, err, want)
			}
		}
		if n, err := c.CountDead(t.Context()); err != nil || n != (model.DeadCounts{}) {
			t.Errorf("dead letters: %+v, %v", n, err)
		}
	})
}

// mustSend sends an event without a payload.
func mustSend(t *testing.T, c *settle.Client, space, stream string) settle.EventID {
	t.Helper()
	id := settle.NewID()
	if _, err := c.Send(t.Context(), settle.Outgoing{Space: space, Stream: stream, ID: id}); err != nil {
		t.Fatal(err)
	}
	return id
}

// The functions of Go that send to an internal stream return an error before anything is stored.
func TestInternal_ClientsInGoStoreNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c, _ := w.client("c", nil)
		s, id := c.Space("s"), settle.ID("e1")
		stream, request, trigger := settle.NewStream[int]("a").Internal(), settle.NewRequest[int, int]("a").Internal(), settle.NewTrigger("a").Internal()
		_, posted := stream.Post(t.Context(), s, id, 1)
		_, asked := request.Call(t.Context(), s, id, 1)
		_, pulled := trigger.Post(t.Context(), s, id)
		sent := c.Sender().Send(t.Context(), trigger.Outgoing(settle.To("s"), id), nil)
		for i, err := range []error{posted, stream.Call(t.Context(), s, id, 1), asked, pulled, trigger.Call(t.Context(), s, id), sent} {
			internal, is := errors.AsType[*model.InternalStreamError](err)
			if !is || internal.Space != "s" || internal.Stream != "a" || !strings.Contains(err.Error(), "nothing was stored") {
				t.Errorf("%d: %v", i, err)
			}
		}
		if ids := w.Lane("s"); ids != nil {
			t.Error("stored:", ids)
		}
	})
}

// Over HTTP, an event on an internal stream is a problem of its own, and not stored, in one space or in all of a pattern.
func TestInternal_HTTPStoresNothing(t *testing.T) {
	post := posts(t, gateway.Config{})
	if got := post("s/streams/add?wait=receipt&timeout=1m", "", "e1", "1"); !strings.HasPrefix(got, "200 ") {
		t.Fatal(got)
	}
	if got := post("s/streams/inner", "", "e1", `"not even a number"`); !strings.HasPrefix(got, "403 ") || !strings.Contains(got, "#internal-stream") || !strings.Contains(got, "nothing was stored") {
		t.Error(got)
	}
	if got := post("../streams/inner?spaces=s*", "", "e2", "1"); !strings.Contains(got, `"sent":0,"before":0,"refused":["s: stream inner of space s is internal`) {
		t.Error(got)
	}
	if got := post("s/streams/add?wait=receipt&timeout=1m", "", "e3", "1"); !strings.Contains(got, `"result":2`) {
		t.Error(got)
	}
}
