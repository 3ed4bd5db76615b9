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
	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/test/chaos/history"
)

// observers are the live queries of a run: of the views of some spaces, some of them twice, of pairs,
// which need the view of another space, and of the document derived from one that is repeatedly created
// and deleted. They watch in three ways by turns: as Go clients, which read the log; over HTTP; and over
// NATS, as clients in other languages do.
type observers struct {
	d    *deployment
	rec  *records
	list []*observer
}

// way is the protocol of an observer.
type way int

const (
	inGo way = iota
	overHTTP
	overNATS
	ways = 3
)

type observer struct {
	all    *observers
	number int
	space  int
	doc    string
	rand   *rand.Rand
	last   atomic.Uint64
	way    way
}

func newObservers(d *deployment, rec *records) *observers {
	o := &observers{d: d, rec: rec}
	spaces := d.o.workload().Spaces
	add := func(space int, doc string) {
		if space < spaces {
			i := len(o.list)
			o.list = append(o.list, &observer{all: o, number: i, space: space, doc: doc, rand: rand.New(rand.NewPCG(d.o.Seed, uint64(i)<<16)), way: way(i % ways)})
		}
	}
	for i := range 8 {
		add(i, history.DocView)
	}
	add(0, history.DocView)
	add(1, history.DocView)
	add(9, history.DocPair)
	add(12, history.DocPair)
	add(2, history.DocMarked)
	add(3, history.DocMarked)
	if hosted := spaces - d.o.Hosted; hosted < spaces {
		add(hosted, history.DocView)
		add(hosted, history.DocMarked)
		add(hosted+1, history.DocView)
		add(hosted-1, history.DocPair)
	}
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

// run watches in consecutive sessions. Some of them end with the connection.
func (o *observer) run(ctx context.Context) {
	for session := 1; ctx.Err() == nil; session++ {
		if o.way == overHTTP {
			o.watchHTTP(ctx, session)
			continue
		}
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
	if o.way == overNATS {
		q := live.Watch{Space: w.Space(o.space), Document: o.doc}
		_ = (&live.Client{Bus: b}).Watch(short, q, func(e live.Event) { // it ends with short
			switch e.Kind {
			case live.Value:
				if v, err := model.ParseValue(e.Data); err == nil {
					o.note(session, e.Revision, v)
				}
			case live.Deleted:
				o.note(session, e.Revision, settle.Value{})
			}
		})
		return
	}
	for u, err := range c.Space(w.Space(o.space)).Watch(short, o.doc) {
		if err != nil {
			_ = pause.For(ctx, 100*time.Millisecond)
			return
		}
		o.note(session, u.Revision, u.Value)
	}
}

// note records a delivery.
func (o *observer) note(session int, revision uint64, v settle.Value) {
	o.last.Store(revision)
	o.all.rec.watches.add(watchRecord{
		Observer: uint16(o.number), Session: uint32(session), Space: uint16(o.space), Doc: history.Hash(o.doc),
		Revision: revision, Value: history.Hash(v.String()), At: stamp(),
	})
}

// in returns the number of observers that use a protocol.
func (o *observers) in(way way) (n int) {
	for _, one := range o.list {
		if one.way == way {
			n++
		}
	}
	return n
}

// current returns an error if the last value of a watched document has not reached its observer, or does
// not match the sums.
func (o *observers) current(ctx context.Context, c *settle.Client) error {
	w := o.d.o.workload()
	var missing error
	for _, one := range o.list {
		sum, _, err1 := c.Space(w.Space(one.space)).Get(ctx, history.DocSum)
		next, _, err2 := c.Space(w.Space(one.space+1)).Get(ctx, history.DocSum)
		got, revision, err3 := c.Space(w.Space(one.space)).Get(ctx, one.doc)
		if err := errors.Join(err1, err2, err3); err != nil {
			return err
		}
		want := history.View(history.SumOf(sum))
		switch one.doc {
		case history.DocPair:
			want = history.Pair(history.SumOf(sum), history.View(history.SumOf(next)))
		case history.DocMarked:
			mark, _, err := c.Space(w.Space(one.space)).Get(ctx, history.DocMark)
			if err != nil {
				return err
			}
			var linked settle.Value
			if to := history.Linked(mark); to != "" {
				if next, _, err = c.Space(to).Get(ctx, history.DocSum); err != nil {
					return err
				}
				linked = history.View(history.SumOf(next))
			}
			want = history.Marked(mark, linked)
		}
		switch last := one.last.Load(); {
		case !model.Equal(got, want):
			missing = errors.Join(missing, fmt.Errorf("%s/%s is %v, and should become %v", w.Space(one.space), one.doc, got, want))
		case last != revision:
			missing = errors.Join(missing, fmt.Errorf("observer %d of %s/%s is at revision %d, the document at %d", one.number, w.Space(one.space), one.doc, last, revision))
		}
	}
	return missing
}
