package worker_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/lookup"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// relay is a program whose event "pay" notes its own id under "paid" and sends it to the space in the payload, which
// notes it under "got": each with how often that happened.
func relay(t *testing.T) *space.Program {
	t.Helper()
	p := space.NewProgram("relay")
	note := func(tx *space.Tx, doc, key string) {
		n, _ := tx.Get(doc, key).AsInt()
		tx.Set(doc, n+1, key)
	}
	err := p.Handle("pay", func(tx *space.Tx, ev *model.Event) (model.Value, error) {
		note(tx, "paid", ev.ID)
		to, _ := ev.Payload.AsString()
		tx.Send(to, "got", ev.ID)
		return model.Value{}, nil
	})
	if err == nil {
		err = p.Handle("got", func(tx *space.Tx, ev *model.Event) (model.Value, error) {
			id, _ := ev.Payload.AsString()
			note(tx, "got", id)
			return model.String("got " + id), nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// reissue is a deployment in which the space from sends to the space to, and the partition of from goes back.
type reissue struct {
	*world
	from, to string
	life     int
	stop     func()
}

func newReissue(t *testing.T) *reissue {
	r := &reissue{world: newWorld(t, 2), from: spacesOf(0, 2, 1)[0], to: spacesOf(1, 2, 1)[0]}
	r.start()
	return r
}

// start starts a worker and a coordinator.
func (r *reissue) start() {
	r.life++
	p := r.process(worker.Config{ID: fmt.Sprint("w", r.life), Programs: always(relay(r.T))}, nil)
	c := r.coordinator()
	r.stop = func() { p.crash(); c.Stop() }
}

// goBack has the partition of from go back, under processes that live on or while none runs.
func (r *reissue) goBack(to *membus.Snapshot, lane, alive bool) {
	if !alive {
		r.stop()
	}
	r.server.GoBackIn(0, to, lane)
	if !alive {
		r.pass(time.Second)
		r.start()
	}
}

func (r *reissue) pay(first, last int) {
	r.Helper()
	for i := first; i <= last; i++ {
		r.send(r.from, "pay", fmt.Sprint("e", i), `"`+r.to+`"`)
	}
}

// counted is how often each event has taken effect in a document.
func (r *reissue) counted(space, doc string) model.Value {
	r.Helper()
	d, err := lookup.Read(r.Context(), r.client, space, doc)
	if err != nil {
		r.Fatal(err)
	}
	return d.Value
}

// wantOnce waits until n events have taken effect in a document, and checks that each has once.
func (r *reissue) wantOnce(space, doc string, n int) {
	r.Helper()
	r.eventually(fmt.Sprintf("%d events have taken effect in %s of %s", n, doc, space), func() bool { return r.counted(space, doc).Len() >= n })
	r.pass(5 * time.Second)
	for id, v := range r.counted(space, doc).All() { // any order: each on its own
		if times, _ := v.AsInt(); times != 1 {
			r.Errorf("%s has taken effect %d times in %s of %s", id, times, doc, space)
		}
	}
	if got := r.counted(space, doc).Len(); got != n {
		r.Errorf("%d events have taken effect in %s of %s, want %d", got, doc, space, n)
	}
}

// A partition alone loses commits whose sends have been handled at the target. What its space sends afterwards takes
// effect there, once, whether the space handles the events of the lost commits again (its lane has them) or not, and whoever
// serves it. What the lost commits have sent stays, and is not done a second time.
func TestReissue_WhatIsSentUnderPositionsThatAreGivenOutAgainArrivesOnce(t *testing.T) {
	for _, alive := range []bool{true, false} {
		for _, lane := range []bool{true, false} {
			for _, before := range []int{0, 5} {
				t.Run(fmt.Sprintf("alive %v, lane lost %v, after %d", alive, lane, before), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						r := newReissue(t)
						r.pay(1, before)
						r.wantOnce(r.to, "got", before)
						old := r.server.Snapshot()
						r.pay(6, 8)
						r.wantOnce(r.to, "got", before+3)
						r.goBack(old, lane, alive)
						r.pay(9, 12)
						r.wantOnce(r.to, "got", before+7)
						if r.pay(6, 8); lane { // they are lost, so they are new to the space, and known to the target
							r.wantOnce(r.from, "paid", before+7)
						}
						r.wantOnce(r.to, "got", before+7)
						if !strings.Contains(r.logged.String(), "given out again") {
							t.Errorf("nothing is said of it:\n%s", r.logged)
						}
						if d := r.server.ReadDead("", 0, 10); len(d) > 0 {
							t.Errorf("dead letters: %+v", d)
						}
					})
				})
			}
		}
	}
}
