package upgrade_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/upgrade"
)

type (
	one   struct{ A int }
	two   struct{ B int }
	three struct{ C []int }
)

var place = name("doc")

type name string

func (n name) String() string { return string(n) }

func toTwo(v one) (two, error) {
	if v.A < 0 {
		return two{}, errors.New("it is negative")
	}
	return two{10 * v.A}, nil
}

func toThree(v two) (three, error) { return three{[]int{v.B}}, nil }

func value(t testing.TB, text string) model.Value {
	t.Helper()
	v, err := model.ParseValue([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func chain(t testing.TB, version int, steps ...upgrade.Step) *upgrade.Chain {
	t.Helper()
	c, err := upgrade.New(version, steps...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestUpgrade_EachVersionIsReadInThePresentForm(t *testing.T) {
	c := chain(t, 3, upgrade.From(1, toTwo), upgrade.From(2, toThree))
	for stored, want := range map[string]string{
		`{"A":4}`: `{"C":[40]}`, `{"B":5,"$version":2}`: `{"C":[5]}`, `{"C":[6],"$version":3}`: `{"C":[6]}`,
		`{"B":5,"A":1}`:        `{"C":[10]}`, // without the key it is version 1, whatever else it has
		`{"A":4,"$version":1}`: `{"C":[40]}`, `{"A":4,"$version":"2"}`: `{"C":[40]}`, `{"A":4,"$version":-1}`: `{"C":[40]}`, `{"A":4,"$version":2.5}`: `{"C":[40]}`,
	} {
		if got, err := c.Upgrade(place, value(t, stored)); err != nil || got.String() != want {
			t.Errorf("%s is read as %s, want %s: %v", stored, got, want, err)
		}
	}
	if got, err := c.Upgrade(place, model.Value{}); err != nil || !got.IsAbsent() {
		t.Errorf("what is absent is read as %s: %v", got, err)
	}
	if c.Version() != 3 || (*upgrade.Chain)(nil).Version() != 1 {
		t.Error("a chain has the wrong version")
	}
}

func TestUpgrade_ErrorsNameTheDocumentAndItsVersion(t *testing.T) {
	both, last := chain(t, 3, upgrade.From(1, toTwo), upgrade.From(2, toThree)), chain(t, 3, upgrade.From(2, toThree))
	number := chain(t, 2, upgrade.Untyped(1, func(model.Value) (model.Value, error) { return model.Int(1), nil }))
	forged := chain(t, 2, upgrade.Untyped(1, func(model.Value) (model.Value, error) { return value(t, `{"$version":7}`), nil }))
	link := chain(t, 2, upgrade.Untyped(1, func(model.Value) (model.Value, error) { return model.Link{Doc: "x"}.Value(), nil }))
	for _, c := range []struct {
		of           *upgrade.Chain
		stored, want string
	}{
		{both, `{"A":-1}`, "upgrade doc from version 1: it is negative"},
		{both, `{"A":"x"}`, "upgrade doc from version 1: "},
		{both, `{"A":1,"$version":4}`, "doc has version 4, and this program reads version 3"},
		{nil, `{"A":1,"$version":2}`, "doc has version 2, and this program reads version 1"},
		{last, `{"A":1}`, "doc has version 1, and this program reads version 2 and later: add the step from 1"},
		{number, `{}`, "upgrade doc from version 1: a document with a version is an object"},
		{forged, `{}`, "the key $version is reserved"},
		{link, `{}`, "cannot be a link"},
	} {
		got, err := c.of.Upgrade(place, value(t, c.stored))
		if err == nil || !strings.Contains(err.Error(), c.want) || !got.IsAbsent() {
			t.Errorf("%s: %s, %v; want %s", c.stored, got, err, c.want)
		}
		var newer *model.NewerError
		if is := strings.Contains(c.want, "and this program reads version") && !strings.Contains(c.want, "later:"); errors.As(err, &newer) != is {
			t.Errorf("%s: %v waits for another program: %v", c.stored, err, !is)
		}
	}
}

func TestStamp(t *testing.T) {
	c := chain(t, 2, upgrade.From(1, toTwo))
	link := model.Link{Doc: "x"}.Value()
	for _, s := range []struct {
		of   *upgrade.Chain
		v    model.Value
		want string // of the value or of the error
	}{
		{c, value(t, `{"B":1}`), `{"$version":2,"B":1}`},
		{nil, value(t, `{"B":1}`), `{"B":1}`},
		{nil, model.Int(7), "7"},
		{nil, link, link.String()},
		{c, model.Int(7), "is an object"},
		{c, link, "cannot be a link"},
		{c, value(t, `{"$version":2}`), "is reserved"},
		{nil, value(t, `{"$version":2}`), "is reserved"},
	} {
		v, err := s.of.Stamp(s.v)
		if err == nil && v.String() != s.want || err != nil && !strings.Contains(err.Error(), s.want) {
			t.Errorf("%s is stored as %s, %v; want %s", s.v, v, err, s.want)
		}
	}
}

func TestNew_RefusesGaps(t *testing.T) {
	zero, a, b := upgrade.From(0, toTwo), upgrade.From(1, toTwo), upgrade.From(2, toThree)
	for _, c := range []struct {
		version int
		steps   []upgrade.Step
	}{{1, nil}, {0, nil}, {model.MaxVersion + 1, nil}, {3, []upgrade.Step{a}}, {3, []upgrade.Step{b, a}}, {2, []upgrade.Step{a, b}}, {2, []upgrade.Step{zero, a}}, {2, []upgrade.Step{b}}, {4, []upgrade.Step{a, b}}} {
		if _, err := upgrade.New(c.version, c.steps...); err == nil || !strings.Contains(err.Error(), fmt.Sprint("version ", c.version)) {
			t.Errorf("version %d with %d steps: %v", c.version, len(c.steps), err)
		}
	}
	for _, steps := range [][]upgrade.Step{{a, b}, {b}, nil} {
		if _, err := upgrade.New(3, steps...); err != nil {
			t.Errorf("version 3 with %d steps: %v", len(steps), err)
		}
	}
	for what, f := range map[string]func(){
		"nil":       func() { upgrade.From[one, two](1, nil) },
		"no values": func() { upgrade.From(1, func(chan int) (two, error) { return two{}, nil }) },
	} {
		func() {
			defer func() {
				if p := fmt.Sprint(recover()); !strings.HasPrefix(p, "upgrade from version 1: ") {
					t.Errorf("%s: %s", what, p)
				}
			}()
			f()
		}()
	}
}

// A document that is read through any chain is the same as one to which the functions were applied in order, and what is stored of it has
// the version of the chain; a document of an older version than the chain, or of a later one, is never read.
func TestUpgrade_PropertyIsTheFunctionsInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		last := rapid.IntRange(2, 8).Draw(t, "version")
		first := rapid.IntRange(1, last).Draw(t, "first")
		var steps []upgrade.Step
		fails := rapid.IntRange(0, 3*last).Draw(t, "fails")
		for n := first; n < last; n++ {
			steps = append(steps, upgrade.Untyped(n, func(v model.Value) (model.Value, error) {
				if n == fails {
					return model.Value{}, errors.New("as it should")
				}
				history, _ := v.Get("history").AsString()
				return v.Set(model.Path{"history"}, model.String(fmt.Sprint(history, ">", n+1)))
			}))
		}
		c, err := upgrade.New(last, steps...)
		if err != nil {
			t.Fatal(err)
		}
		stored := rapid.IntRange(1, last+2).Draw(t, "stored")
		v := model.Object(model.Field{Key: "history", Value: model.String(fmt.Sprint(stored))})
		want := fmt.Sprint(stored)
		for n := stored; n < last; n++ {
			want += fmt.Sprint(">", n+1)
		}
		readable := stored >= first && stored <= last && (fails < stored || fails >= last)
		if stored > 1 || rapid.Bool().Draw(t, "key") {
			v, _ = v.Set(model.Path{model.VersionKey}, model.Int(int64(stored)))
		}
		for range 2 { // again, since each read upgrades
			got, err := c.Upgrade(place, v)
			if (err == nil) != readable {
				t.Fatalf("version %d, read by %d to %d: %s %v", stored, first, last, got, err)
			}
			if err != nil {
				if !got.IsAbsent() {
					t.Fatalf("a part of the upgrades has made %s", got)
				}
				return
			}
			if text, _ := got.Get("history").AsString(); text != want || model.VersionOf(got) != 1 {
				t.Fatalf("version %d is read as %s, want %s", stored, got, want)
			}
			if v, err = c.Stamp(got); err != nil || model.VersionOf(v) != last {
				t.Fatalf("stored as %s: %v", v, err)
			}
			want, stored = fmt.Sprint(want), last
		}
	})
}
