package buscontract

import (
	"fmt"
	"math"
	"sync"

	"github.com/settlehq/settle/model"
)

var aheadChecks = []check{
	{"the Ahead of a lane is the zero value until one is saved", func(w *world) { w.wantAhead(w.connect("a"), 0, model.Ahead{}) }},
	{"an Ahead only grows, and each partition has its own", aheadOnlyGrows},
	{"of racing savers' Aheads the furthest stays, as a whole", racingAheads},
	{"moving a position back removes its Ahead until one is saved that reaches further", movedAhead},
	{"a lost acknowledgement of an Ahead is a success", aheadInDoubt},
	{"the events of a space are counted between two sequences", laneIsCounted},
}

func (w *world) wantAhead(c Client, partition int, want model.Ahead) {
	w.Helper()
	got, err := c.LoadAhead(w.ctx, partition)
	w.must(err)
	w.equal(fmt.Sprintf("ahead of partition %d", partition), fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want))
}

func aheadOnlyGrows(w *world) {
	a, b := w.connect("a"), w.connect("b")
	first := model.Ahead{UpTo: 7, Aside: []model.Aside{{Space: "s", Done: 2, Last: 6}, {Space: "t", Done: 1}}}
	w.must(a.SaveAhead(w.ctx, 0, first))
	w.wantAhead(b, 0, first)
	for _, upTo := range []uint64{3, 7, 0} {
		w.must(b.SaveAhead(w.ctx, 0, model.Ahead{UpTo: upTo}))
		w.wantAhead(a, 0, first)
	}
	w.wantAhead(a, 1, model.Ahead{})
	w.must(b.SaveAhead(w.ctx, 0, model.Ahead{UpTo: 8}))
	w.wantAhead(a, 0, model.Ahead{UpTo: 8})
	w.wantPosition(a, 0, "lane", 0)
	for _, p := range []int{-1, partitions} {
		if _, err := a.LoadAhead(w.ctx, p); err == nil {
			w.Errorf("partition %d does not exist and has an Ahead", p)
		}
		if err := a.SaveAhead(w.ctx, p, first); err == nil {
			w.Errorf("partition %d does not exist and an Ahead was saved there", p)
		}
	}
}

func racingAheads(w *world) {
	const savers, each = 4, 10
	of := func(upTo uint64) model.Ahead {
		return model.Ahead{UpTo: upTo, Aside: []model.Aside{{Space: "s", Done: upTo - 1, Last: upTo}}}
	}
	var all sync.WaitGroup
	for i := range savers {
		c := w.connect(fmt.Sprintf("c%d", i))
		all.Go(func() {
			for n := range each {
				if err := c.SaveAhead(w.ctx, 0, of(uint64(1+n*savers+i))); err != nil {
					w.Error(err)
				}
			}
		})
	}
	all.Wait()
	w.wantAhead(w.connect("reader"), 0, of(savers*each))
}

func movedAhead(w *world) {
	c := w.connect("a")
	w.must(c.SaveAhead(w.ctx, 0, model.Ahead{UpTo: 9, Aside: []model.Aside{{Space: "s"}}}))
	w.wantPosition(c, 0, model.AheadPosition, 9)
	w.must(c.MovePosition(w.ctx, 0, model.AheadPosition, 4))
	w.wantAhead(c, 0, model.Ahead{})
	w.wantPosition(c, 0, model.AheadPosition, 4)
	w.must(c.SaveAhead(w.ctx, 0, model.Ahead{UpTo: 4}))
	w.wantAhead(c, 0, model.Ahead{})
	w.must(c.SaveAhead(w.ctx, 0, model.Ahead{UpTo: 5}))
	w.wantAhead(c, 0, model.Ahead{UpTo: 5})
}

func aheadInDoubt(w *world) {
	c := w.connect("a")
	for i, fault := range faults {
		c.Inject(Save, fault, nil) // if this bus saves it with such a request
		a := model.Ahead{UpTo: uint64(i + 1), Aside: []model.Aside{{Space: "s", Last: uint64(i + 1)}}}
		w.must(c.SaveAhead(w.ctx, 0, a))
		w.wantAhead(c, 0, a)
	}
}

func laneIsCounted(w *world) {
	c := w.connect("a")
	first, second := cart, space(0, 1)
	for i := range 5 { // first has 1, 3, 5, 7, 9
		w.sendAll(c, first, fmt.Sprint("e", i))
		w.sendAll(c, second, fmt.Sprint("e", i))
	}
	for _, x := range []struct {
		space       string
		after, upTo uint64
		want        int
	}{
		{first, 0, math.MaxUint64, 5},
		{first, 0, 1, 1},
		{first, 1, 9, 4},
		{first, 1, 8, 3},
		{first, 3, 3, 0},
		{first, 9, 100, 0},
		{first, 100, 3, 0},
		{second, 0, 10, 5},
		{second, 2, 9, 3},
		{"none", 0, 10, 0},
	} {
		got, err := c.CountLane(w.ctx, x.space, x.after, x.upTo)
		w.must(err)
		w.equal(fmt.Sprintf("events of %s behind %d up to %d", x.space, x.after, x.upTo), got, x.want)
	}
	if _, err := c.CountLane(w.ctx, "a.b", 0, 1); err == nil {
		w.Errorf("a space that cannot be was counted")
	}
}
