package docversions

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
)

// deployment has the stored documents of spaces.
type deployment map[string]map[string]model.Value

func (d deployment) read(t testing.TB, q Question) *Report {
	t.Helper()
	r, err := Read(t.Context(), slices.Sorted(maps.Keys(d)), d.contents, q)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (d deployment) contents(_ context.Context, space string) (*history.Contents, error) {
	if d[space] == nil {
		return nil, fmt.Errorf("space %s cannot be read", space)
	}
	st := model.SpaceState{}
	for id, v := range d[space] { // any order: sorted by the replica
		st.Docs = append(st.Docs, model.StateDoc{Doc: id, Seq: 1, Data: v.AppendJSON(nil)})
	}
	r, err := replica.Load(space, st)
	return &history.Contents{Replica: r}, err
}

func value(t testing.TB, text string) model.Value {
	t.Helper()
	v, err := model.ParseValue([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// small is a deployment with a document, rows and a collection, some of each migrated.
func small(t *testing.T) deployment {
	old, now := value(t, `{"name":"Ann"}`), value(t, `{"$version":2,"first":"Ann"}`)
	later := value(t, `{"$version":3,"first":"Ann"}`)
	return deployment{
		"a": {"profile": old, "team": value(t, `{"x":{"n":1},"y":{"n":1,"$version":2}}`), "order-1": old, "order-2": later},
		"b": {"profile": now, "team": value(t, `{"x":{"n":1},"z":{"n":1}}`), "order-3": now, "plain": old, "text": model.String("x")},
		"c": {"profile": old, "order-1": later},
		"d": {"profile": model.Link{Doc: "plain"}.Value()},
	}
}

func TestRead_CountsWhatIsOlder(t *testing.T) {
	profile, team := Documents{Name: "profile"}, Documents{Name: "team", Rows: true}
	want := func(r *Report, counts ...Count) {
		t.Helper()
		if r.Spaces != 4 || !reflect.DeepEqual(r.Counts, counts) {
			t.Errorf("%d spaces, %+v; want %+v", r.Spaces, r.Counts, counts)
		}
	}
	profiles := Count{profile, 2, map[int]int{1: 2, 2: 1}, 2, 2, []Space{{"a", 1, 1}, {"c", 1, 1}}}
	rows := Count{team, 2, map[int]int{1: 3, 2: 1}, 3, 2, []Space{{"a", 1, 1}, {"b", 2, 1}}}
	d := small(t)
	want(d.read(t, Question{Listed: 9}),
		Count{Documents{"order-1", false}, 3, map[int]int{1: 1, 3: 1}, 1, 1, []Space{{"a", 1, 1}}},
		Count{Documents{"order-2", false}, 3, map[int]int{3: 1}, 0, 0, nil},
		Count{Documents{"order-3", false}, 2, map[int]int{2: 1}, 0, 0, nil}, profiles, rows)
	want(d.read(t, Question{Present: map[Documents]int{profile: 2, team: 2, {"order-*", false}: 3, {"none", false}: 2}, Listed: 9}),
		Count{Documents{"none", false}, 2, map[int]int{}, 0, 0, nil},
		Count{Documents{"order-*", false}, 3, map[int]int{1: 1, 2: 1, 3: 2}, 2, 2, []Space{{"a", 1, 1}, {"b", 1, 2}}}, profiles, rows)
	// A version that no document has yet makes all of them older. One that is later than the present one is counted, and not older.
	want(d.read(t, Question{Present: map[Documents]int{profile: 4, {"order-1", false}: 2}, Listed: 1}),
		Count{Documents{"order-1", false}, 2, map[int]int{1: 1, 3: 1}, 1, 1, []Space{{"a", 1, 1}}},
		Count{profile, 4, map[int]int{1: 2, 2: 1}, 3, 3, []Space{{"a", 1, 1}}})
}

// Read agrees with counting the documents of each version and space one by one.
func TestRead_PropertyAgreesWithAPlainCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := deployment{}
		version := rapid.IntRange(1, 4)
		for i := range rapid.IntRange(1, 40).Draw(t, "spaces") {
			docs := map[string]model.Value{}
			for _, id := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"x", "y-1", "y-2", "z"}), 0, 4, rapid.ID).Draw(t, "documents") {
				docs[id] = model.Object(model.Field{Key: model.VersionKey, Value: model.Int(int64(version.Draw(t, "version")))})
			}
			d[fmt.Sprintf("s%02d", i)] = docs
		}
		present, listed := version.Filter(func(n int) bool { return n > 1 }).Draw(t, "present"), rapid.IntRange(0, 5).Draw(t, "listed")
		of := Documents{Name: rapid.SampledFrom([]string{"x", "y-*", "*"}).Draw(t, "name")}
		want := Count{Documents: of, Present: present, Stored: map[int]int{}}
		for _, space := range slices.Sorted(maps.Keys(d)) {
			s := Space{Name: space, Oldest: 5}
			for id, v := range d[space] { // any order: sums
				if !model.MatchesPattern(of.Name, id) {
					continue
				}
				n := model.VersionOf(v)
				want.Stored[n]++
				if n < present {
					want.Older++
					s.Older++
					s.Oldest = min(s.Oldest, n)
				}
			}
			if s.Older > 0 {
				want.Spaces++
				want.In = append(want.In, s)
			}
		}
		want.In = want.In[:min(len(want.In), listed)]
		r, err := Read(context.Background(), slices.Sorted(maps.Keys(d)), d.contents, Question{map[Documents]int{of: present}, listed})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Counts[0]; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}

// What a report keeps has bounds: neither names nor versions nor errors without an end.
func TestRead_IsBounded(t *testing.T) {
	many := map[string]model.Value{}
	for i := range maxCounts + 1 {
		many[fmt.Sprint("order-", i)] = model.Int(1)
	}
	d := deployment{"a": many}
	if _, err := Read(t.Context(), []string{"a"}, d.contents, Question{}); !errors.Is(err, ErrTooMany) {
		t.Errorf("too many names: %v", err)
	}
	if r := d.read(t, Question{Present: map[Documents]int{{"order-*", false}: 2}}); r.Counts[0].Older != len(many) {
		t.Errorf("names that are named by a pattern: %+v", r.Counts)
	}
	d = small(t)
	spaces := []string{"a", "gone", "b"}
	r, err := Read(t.Context(), spaces, d.contents, Question{})
	if err != nil || r.Spaces != 2 || len(r.Errors) != 1 || !strings.Contains(r.Errors[0].Error(), "space gone") {
		t.Errorf("a space that cannot be read: %v %+v", err, r)
	}
	for i := range maxErrors + 1 {
		spaces = append(spaces, fmt.Sprint("gone-", i))
	}
	if _, err := Read(t.Context(), spaces, d.contents, Question{}); err == nil || !strings.Contains(err.Error(), "more than 20 spaces cannot be read") {
		t.Errorf("many spaces that cannot be read: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := Read(ctx, spaces, d.contents, Question{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v %+v", err, r)
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]Documents{"x": {"x", false}, "x/*": {"x", true}, "x-*": {"x-*", false}, "x-*/*": {"x-*", true}} {
		if got, err := Parse(text); err != nil || got != want || got.String() != text {
			t.Errorf("%s: %+v %v", text, got, err)
		}
	}
	for _, text := range []string{"", "/*", "a/b", "a b", "a.*", "*a"} {
		if got, err := Parse(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}
