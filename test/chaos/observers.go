//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/test/chaos/history"
)

// observers are the live queries of a run: of the views of some spaces, some of them
// twice, and of pairs, which need the view of another space.
type observers struct {
	d    *deployment
	rec  *records
	list []*observer
}

type observer struct {
	all    *observers
	number int
	space  int
	doc    string
	rand   *rand.Rand
	last   atomic.Uint64
}

func newObservers(d *deployment, rec *records) *observers {
	o := &observers{d: d, rec: rec}
	spaces := d.o.workload().Spaces
	add := func(space int, doc string) {
		if space < spaces {
			i := len(o.list)
			o.list = append(o.list, &observer{all: o, number: i, space: space, doc: doc, rand: rand.New(rand.NewPCG(d.o.Seed, uint64(i)<<16))})
		}
	}
	for i := range 8 {
		add(i, history.DocView)
	}
	add(0, history.DocView)
	add(1, history.DocView)
	add(9, history.DocPair)
	add(12, history.DocPair)
	return o
}

// run observes until ctx ends.
func (o *observers) run(ctx context.Context) {
	var all sync.WaitGroup
	for _, one := range o.list {
		all.Go(func() { one.run(ctx) })
	}
	all.Wait()
}

// run watches in one session after the other. Some end with the connection.
func (o *observer) run(ctx context.Context) {
	for session := 1; ctx.Err() == nil; session++ {
		b, err := bus.Connect(ctx, o.all.d.busConfig(fmt.Sprintf("client/o%02d", o.number)))
		if err != nil {
			_ = pause.For(ctx, 100*time.Millisecond)
			continue
		}
		c, err := settle.NewClient(b, settle.ClientConfig{ID: fmt.Sprintf("o%02d", o.number)})
		if err == nil {
			o.watch(ctx, c, b, session)
			c.Close()
		}
		b.Kill()
	}
}

func (o *observer) watch(ctx context.Context, c *settle.Client, b *bus.Bus, session int) {
	short, cancel := context.WithTimeout(ctx, time.Duration(5+o.rand.IntN(40))*time.Second)
	defer cancel()
	if o.rand.IntN(2) == 0 {
		defer context.AfterFunc(short, b.Kill)()
	}
	w := o.all.d.o.workload()
	err := c.Watch(short, w.Space(o.space), o.doc, func(v settle.Value, revision uint64) {
		o.last.Store(revision)
		o.all.rec.watches.add(watchRecord{
			Observer: uint16(o.number), Session: uint32(session), Space: uint16(o.space), Doc: history.Hash(o.doc),
			Revision: revision, Value: history.Hash(v.String()), At: stamp(),
		})
	})
	if err != nil && short.Err() == nil {
		_ = pause.For(ctx, 100*time.Millisecond)
	}
}

// current reports what of the watched documents has not reached its observer, or is not
// what follows from the sums.
func (o *observers) current(ctx context.Context, c *settle.Client) error {
	w := o.d.o.workload()
	var missing error
	for _, one := range o.list {
		sum, _, err1 := c.Get(ctx, w.Space(one.space), history.DocSum)
		next, _, err2 := c.Get(ctx, w.Space(one.space+1), history.DocSum)
		got, revision, err3 := c.Get(ctx, w.Space(one.space), one.doc)
		if err := errors.Join(err1, err2, err3); err != nil {
			return err
		}
		want := history.View(history.SumOf(sum))
		if one.doc == history.DocPair {
			want = history.Pair(history.SumOf(sum), history.View(history.SumOf(next)))
		}
		switch last := one.last.Load(); {
		case got.String() != want.String():
			missing = errors.Join(missing, fmt.Errorf("%s/%s is %v, and should become %v", w.Space(one.space), one.doc, got, want))
		case last != revision:
			missing = errors.Join(missing, fmt.Errorf("observer %d of %s/%s is at revision %d, the document at %d", one.number, w.Space(one.space), one.doc, last, revision))
		}
	}
	return missing
}
