package history

import (
	"testing"

	"github.com/settlehq/settle/model"
)

// withoutLog judges a run by the data that remains when its log is purged.
func withoutLog(s *synthetic, spoil func(space string, seen map[string]int64)) *Checker {
	c := New(s.work, s.parts)
	for _, a := range s.acks {
		c.Acked(a.client, a.space, a.n, a.lane, a.at)
	}
	for _, d := range s.watched {
		c.Watched(d.observer, d.session, d.space, d.doc, d.revision, d.value, d.at)
	}
	for _, lane := range s.lanes {
		for _, m := range lane {
			c.Lane(m)
		}
	}
	for _, l := range s.letters {
		c.LetterAlone(l.space, l.stream, l.id)
	}
	for name, st := range s.state {
		spoil(name, st.seen)
		n, seen := int64(0), model.Object()
		for k, v := range st.seen {
			n += v
			seen, _ = seen.Set(model.Path{k}, model.Int(v))
		}
		c.SavedAlone(name, model.SpaceState{Docs: []model.StateDoc{
			{Doc: DocSum, Data: Sum{n, 0}.Value().AppendJSON(nil)}, {Doc: DocSeen, Data: seen.AppendJSON(nil)},
		}})
	}
	c.FinishWithoutLog()
	return c
}

func TestWithoutALogTotalsTellWhatIsLostAndWhatIsThereTwice(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(space string, seen map[string]int64)
		want  Rule
	}{
		"faultless":              {func(string, map[string]int64) {}, ""},
		"a client's event lost":  {func(space string, seen map[string]int64) { seen["k001"]-- }, Lost},
		"a client's event twice": {func(space string, seen map[string]int64) { seen["k001"]++ }, Duplicates},
		"a follow-up lost":       {func(space string, seen map[string]int64) { seen[space] = 0 }, Lost},
		"a notice twice":         {func(space string, seen map[string]int64) { seen[model.Undelivered]++ }, Duplicates},
		"without an origin":      {func(space string, seen map[string]int64) { seen["k900"]++ }, Duplicates},
		"a hop lost": {func(space string, seen map[string]int64) {
			if space == "s01" {
				seen["s02"]--
			}
		}, Lost},
	} {
		checker := withoutLog(faultless(40), c.spoil)
		if c.want == "" && !checker.Sound() || c.want != "" && checker.Violations[c.want] == 0 {
			t.Errorf("%s: found %v %v", name, checker.Violations, checker.Examples)
		}
	}
}

func TestWithoutALogAWatchThatGoesBackIsFound(t *testing.T) {
	s := faultless(2)
	s.compute("s00", 1, 1)
	s.watched = append(s.watched, s.watched[0])
	if c := withoutLog(s, func(string, map[string]int64) {}); c.Violations[Regression] != 1 {
		t.Errorf("found %v", c.Violations)
	}
}
