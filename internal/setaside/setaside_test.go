package setaside

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
)

func TestMarks_LagByTheTimeThatIsGiven(t *testing.T) {
	var m Marks
	begin := time.Unix(0, 0)
	for _, c := range []struct {
		second     int
		read, want uint64
	}{
		{0, 5, 0}, {9, 7, 0}, {10, 20, 5}, {18, 30, 5}, {19, 40, 7}, {25, 50, 20}, {100, 60, 50},
	} {
		if got := m.Lagging(begin.Add(time.Duration(c.second)*time.Second), 10*time.Second, c.read); got != c.want {
			t.Errorf("at %d s it lags at %d, want %d", c.second, got, c.want)
		}
	}
	if len(m) > 2 {
		t.Errorf("%d marks are kept of what is long ago", len(m))
	}
}

// The position without the set-aside spaces is correct for all others, no space that makes progress is
// set aside, and the names fit into the room.
func TestReach_IsTrueOfAllThatAreNotSetAside(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 0))
		done, lagging := uint64(10+r.IntN(10)), uint64(r.IntN(20))
		room := r.IntN(6) * model.AsideBytes("s0")
		var behind []model.Aside
		for i := range r.IntN(8) {
			behind = append(behind, model.Aside{Space: fmt.Sprintf("s%d", i), Done: uint64(r.IntN(int(done))), Last: done})
		}
		all, ahead := Reach(done, behind, lagging, room)
		least, aside := done, map[string]bool{}
		for _, s := range ahead.Aside {
			aside[s.Space] = true
			if room -= model.AsideBytes(s.Space); room < 0 || s.Done >= lagging {
				t.Fatalf("seed %d: %+v is set aside; lagging %d, room left %d", seed, s, lagging, room)
			}
		}
		upTo := done
		for _, s := range behind {
			least = min(least, s.Done)
			if !aside[s.Space] {
				upTo = min(upTo, s.Done)
			}
		}
		if all != least || ahead.UpTo != upTo {
			t.Fatalf("seed %d: done up to %d, and up to %d beside %v; want %d and %d", seed, all, ahead.UpTo, ahead.Aside, least, upTo)
		}
	}
}

func TestReach_SetsAsideNoMoreThanAPositionCanName(t *testing.T) {
	var behind []model.Aside
	for i := range model.MaxAside + 1 {
		behind = append(behind, model.Aside{Space: fmt.Sprintf("s%04d", i), Done: 1, Last: 9})
	}
	_, ahead := Reach(10, behind, 5, 1<<30)
	if len(ahead.Aside) != model.MaxAside || ahead.UpTo != 1 {
		t.Errorf("%d are set aside, and the position is %d", len(ahead.Aside), ahead.UpTo)
	}
}

func TestLeft_NamesWhatASpaceHasLeft(t *testing.T) {
	a := &model.Ahead{Aside: []model.Aside{{Space: "done", Done: 2, Last: 5}, {Space: "half", Done: 2, Last: 9}, {Space: "none", Done: 7, Last: 3}}}
	want := []model.Aside{{Space: "half", Done: 6, Last: 9}, {Space: "none", Done: 7}}
	if got := Left(a, 6); !reflect.DeepEqual(got, want) {
		t.Errorf("left is %+v, want %+v", got, want)
	}
}

func TestKnown_UpToTheLastOfASpace(t *testing.T) {
	var k Known
	k.Expect(&model.Aside{Space: "before", Last: 4}, 4)
	if k != nil {
		t.Errorf("a space with nothing behind the start is expected: %v", k)
	}
	k.Expect(&model.Aside{Space: "s", Last: 9}, 4)
	for _, c := range []struct {
		space string
		seq   uint64
		want  bool
	}{{"other", 5, false}, {"s", 6, true}, {"s", 9, true}, {"s", 9, false}, {"s", 10, false}} {
		m := model.Message{Space: c.space}
		m.Seq = c.seq
		if got := k.Has(&m); got != c.want {
			t.Errorf("%s at %d: %v", c.space, c.seq, got)
		}
	}
	k.Expect(&model.Aside{Space: "s", Last: 9}, 4)
	m := model.Message{Space: "s"}
	m.Seq = 12 // the one at 9 has been removed
	if k.Has(&m) || len(k) > 0 {
		t.Errorf("what is behind the last is known: %v", k)
	}
}
