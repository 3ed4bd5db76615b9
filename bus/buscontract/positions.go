package buscontract

import (
	"fmt"
	"sync"

	"github.com/settlehq/settle/model"
)

var positionChecks = []check{
	{"a position that was never saved is 0", func(w *world) { w.wantPosition(w.connect("a"), 0, "release", 0) }},
	{"positions only grow", positionsOnlyGrow},
	{"positions are separate by name and partition", positionsAreApart},
	{"of racing savers the largest stays", racingPositions},
	{"a position survives a disconnection", positionSurvives},
	{"a lost acknowledgement of a position is a success", positionInDoubt},
}

func (w *world) wantPosition(c Client, partition int, name string, want uint64) {
	w.Helper()
	got, err := c.LoadPosition(w.ctx, partition, name)
	w.must(err)
	w.equal(fmt.Sprintf("position %s of partition %d", name, partition), got, want)
}

func positionsOnlyGrow(w *world) {
	c := w.connect("a")
	for _, seq := range []uint64{5, 3, 5, 0} {
		w.must(c.SavePosition(w.ctx, 0, "release", seq))
		w.wantPosition(c, 0, "release", 5)
	}
	w.must(w.connect("b").SavePosition(w.ctx, 0, "release", model.MaxNumber))
	w.wantPosition(c, 0, "release", model.MaxNumber)
}

func positionsAreApart(w *world) {
	c := w.connect("a")
	w.must(c.SavePosition(w.ctx, 0, "release", 5))
	w.must(c.SavePosition(w.ctx, 1, "release", 6))
	w.must(c.SavePosition(w.ctx, 0, "release-2", 7))
	w.wantPosition(c, 0, "release", 5)
	w.wantPosition(c, 1, "release", 6)
	w.wantPosition(c, 0, "release-2", 7)
	s, err := c.LoadState(w.ctx, "release")
	w.must(err)
	w.equal("documents of a space of that name", len(s.Docs), 0)
	for _, p := range []int{-1, partitions} {
		if _, err := c.LoadPosition(w.ctx, p, "release"); err == nil {
			w.Errorf("partition %d does not exist and has a position", p)
		}
		if err := c.SavePosition(w.ctx, p, "release", 1); err == nil {
			w.Errorf("partition %d does not exist and a position was saved there", p)
		}
	}
}

func racingPositions(w *world) {
	const savers, each = 4, 10
	var all sync.WaitGroup
	for i := range savers {
		c := w.connect(fmt.Sprintf("c%d", i))
		all.Go(func() {
			for n := range each {
				if err := c.SavePosition(w.ctx, 0, "release", uint64(1+n*savers+i)); err != nil {
					w.Error(err)
				}
			}
		})
	}
	all.Wait()
	w.wantPosition(w.connect("reader"), 0, "release", savers*each)
}

func positionSurvives(w *world) {
	c := w.connect("a")
	w.must(c.SavePosition(w.ctx, 0, "release", 5))
	w.Disconnect(w.T)
	w.Reconnect(w.T)
	w.wantPosition(c, 0, "release", 5)
}

func positionInDoubt(w *world) {
	c := w.connect("a")
	for i, fault := range faults {
		c.Inject(Save, fault, nil) // if this bus saves positions with such a request
		w.must(c.SavePosition(w.ctx, 0, "release", uint64(i+1)))
		w.wantPosition(c, 0, "release", uint64(i+1))
	}
}
