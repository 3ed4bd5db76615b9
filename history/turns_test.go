package history

import (
	"context"
	"testing"

	"github.com/settlehq/settle/model"
)

// A caller that gives up when its turn has come leaves it: those that it was to do something for do it themselves, and nothing of it remains.
func TestTurns_ACallerThatGivesUpItsTurn(t *testing.T) {
	var all turns[int]
	of := ofSpace{space: "s"}
	for range maxAlone {
		if all.gather(of, &turn[int]{}) {
			t.Fatal("one of the first callers waits")
		}
	}
	var waiting []*turn[int]
	for range 3 {
		w := &turn[int]{come: make(chan struct{}, 1)}
		if !all.gather(of, w) {
			t.Fatal("a caller more does not wait")
		}
		waiting = append(waiting, w)
	}
	all.next(of)
	if first := waiting[0]; len(first.come) != 1 || len(first.list) != 3 {
		t.Fatalf("the first one is to do %d of 3", len(first.list))
	}
	all.leave(of, waiting[0])
	for _, w := range waiting[1:] {
		if len(w.come) != 1 || !w.alone {
			t.Error("a caller waits for one that has given up")
		}
	}
	for range maxAlone - 1 {
		all.next(of)
	}
	if len(all.by) > 0 {
		t.Errorf("%d are said to be at work", all.by[of].atWork)
	}
}

// lagging is a client whose replica shows one commit more at each question.
type lagging struct {
	epochs
	shown int
}

func (*lagging) LoadPart(context.Context, string, string) (model.SpaceState, error) {
	return model.SpaceState{}, nil
}

func (l *lagging) ReadLog(_ context.Context, space string, after uint64, _ int) (found []model.LogEntry, err error) {
	l.shown++
	for seq := after + 1; seq <= uint64(l.shown); seq++ {
		c := model.Commit{Version: model.CommitVersion, Space: space, Runtime: "w", Takeover: true}
		found = append(found, model.LogEntry{Space: space, Seq: seq, Prev: seq - 1, Data: model.AppendCommit(nil, &c, nil)})
	}
	return found, nil
}

// Documents that are read together reach the head of each caller, in whichever order they came.
func TestTogether_EachCallerHasItsHead(t *testing.T) {
	list := []*wanted{{doc: "a", head: 3}, {doc: "b", head: 1}}
	together := NewTogether(&lagging{})
	if err := together.read(t.Context(), ofSpace{"s", 1}, list); err != nil {
		t.Fatal(err)
	}
	for _, w := range list {
		if w.d.Read < w.head {
			t.Errorf("%s is read up to %d, and %d was the head", w.doc, w.d.Read, w.head)
		}
	}
}
