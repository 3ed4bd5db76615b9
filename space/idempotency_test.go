package space

import (
	"fmt"
	"slices"
	"testing"

	"github.com/settlehq/settle/model"
)

func TestS07_DifferencesAreReportedByKey(t *testing.T) {
	for _, c := range []struct {
		name          string
		first, second string
		want          []string // place: first, second
		ofSecond      []string // places
	}{
		{"equal", `{"a":1,"b":[1]}`, `{"a":1,"b":[1]}`, nil, nil},
		{"in the first only", `{"a":1,"b":2}`, `{"a":1}`, []string{"d/b: 2, absent"}, nil},
		{"in the second only", `{"a":1}`, `{"a":1,"b":2}`, []string{"d/b: absent, 2"}, []string{"d/b"}},
		{"another value", `{"a":1,"b":2}`, `{"a":1,"b":3}`, []string{"d/b: 2, 3"}, []string{"d/b"}},
		{"deep", `{"a":{"x":1,"y":1}}`, `{"a":{"x":2,"z":1}}`, []string{"d/a/x: 1, 2", "d/a/y: 1, absent", "d/a/z: absent, 1"}, []string{"d/a/x", "d/a/z"}},
		{"a whole document", `1`, `2`, []string{"d: 1, 2"}, []string{"d"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := Violation{Node: "n", Differences: differences("d", mustParse(t, c.first), mustParse(t, c.second))}
			var got, second []string
			for _, d := range v.Differences {
				got = append(got, fmt.Sprintf("%s: %s, %s", d.Place, show(d.First), show(d.Second)))
			}
			for _, d := range v.OfSecond() {
				second = append(second, d.Place)
			}
			slices.Sort(got)
			slices.Sort(second)
			if !slices.Equal(got, c.want) {
				t.Errorf("differences %q, want %q", got, c.want)
			}
			if !slices.Equal(second, c.ofSecond) {
				t.Errorf("of the second run %q, want %q", second, c.ofSecond)
			}
		})
	}
}

func mustParse(t *testing.T, json string) model.Value {
	t.Helper()
	v, err := model.ParseValue([]byte(json))
	if err != nil {
		t.Fatal(err)
	}
	return v
}
