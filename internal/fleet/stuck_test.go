package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/status"
)

// pages are workers with more stuck spaces than they name in their figures. One without a list is of an earlier version, and answers with its figures.
type pages struct {
	Bus
	of    map[string][]status.Stuck
	asked atomic.Int64
}

func (p *pages) Ask(_ context.Context, endpoint string, request []byte) ([]byte, error) {
	id := strings.TrimPrefix(endpoint, status.Endpoint(""))
	all, known := p.of[id]
	p.asked.Add(1)
	var q status.Question
	if err := json.Unmarshal(request, &q); err != nil || q.Stuck == nil {
		return nil, fmt.Errorf("asked %s", request)
	}
	switch {
	case id == "gone":
		return nil, model.ErrNoResponder
	case !known:
		return json.Marshal(status.Figures{Worker: id, StuckCount: 30})
	}
	all = slices.DeleteFunc(slices.Clone(all), func(s status.Stuck) bool { return !q.Stuck.Behind(&s) })
	page := all[:min(len(all), 7)]
	return json.Marshal(status.StuckPage{Paged: true, Stuck: page, More: len(all) > len(page)})
}

// All stuck spaces are named, of all workers: those that a worker names in its figures are enough if they are all, or if it does not answer.
func TestAllStuck_NamesThoseThatTheFiguresLeaveOut(t *testing.T) {
	stuck := func(worker string, n int) (list []status.Stuck) {
		for i := range n {
			list = append(list, status.Stuck{Space: fmt.Sprintf("%s-%02d", worker, i), Since: time.Unix(int64(i/3), 0).UTC()})
		}
		return list
	}
	bus := &pages{of: map[string][]status.Stuck{"w1": stuck("w1", 30), "w2": stuck("w2", 5)}}
	member := func(id string, named, count int) Member {
		return Member{ID: id, Figures: &status.Figures{Stuck: stuck(id, named), StuckCount: count}}
	}
	f := &Fleet{Workers: []Member{member("w1", 20, 30), member("w2", 5, 5), member("old", 20, 30), member("gone", 20, 25), {ID: "silent"}}}
	f.Partitions = []Partition{{lost: []Stuck{{status.Stuck{Space: "lost", Since: time.Unix(99, 0)}, "w9"}, {status.Stuck{Space: "w2-00"}, "w9"}}}}
	f.gatherStuck()
	counts := map[string]int{}
	all := f.AllStuck(t.Context(), bus)
	for i := range all {
		counts[all[i].Worker]++
		if i > 0 && all[i].Since.Before(all[i-1].Since) {
			t.Errorf("%s comes after %s", all[i].Space, all[i-1].Space)
		}
	}
	if got := fmt.Sprint(counts); got != "map[gone:20 old:20 w1:30 w2:4 w9:2]" {
		t.Errorf("the workers name %s", got)
	}
	if few := (&Fleet{Stuck: f.Stuck[:2], StuckCount: 2}); len(few.AllStuck(t.Context(), bus)) != 2 || bus.asked.Load() > 7 {
		t.Errorf("%d questions were asked", bus.asked.Load())
	}
}
