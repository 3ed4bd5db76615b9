package model

import (
	"reflect"
	"strings"
	"testing"
)

func TestAhead_RoundTrips(t *testing.T) {
	long := strings.Repeat("x", MaxNameLen)
	for _, a := range []Ahead{
		{},
		{UpTo: 7},
		{UpTo: MaxNumber, Aside: []Aside{{Space: "s"}, {Space: long, Done: MaxNumber, Last: MaxNumber}}},
	} {
		data, err := a.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeAhead(data)
		if err != nil || !reflect.DeepEqual(got, a) {
			t.Errorf("%s is read as %+v, %v; want %+v", data, got, err, a)
		}
		size := 64
		for _, s := range a.Aside {
			size += AsideBytes(s.Space)
		}
		if len(data) > size {
			t.Errorf("it takes %d bytes, and is counted as %d: %s", len(data), size, data)
		}
	}
}

func TestAhead_RefusesInvalidInput(t *testing.T) {
	many := `{"up_to":1,"aside":[` + strings.TrimSuffix(strings.Repeat(`{"space":"s","done":1},`, MaxAside+1), ",") + `]}`
	for _, text := range []string{
		"", "7", `{"up_to":-1}`, `{"up_to":"x"}`, `{"up_to":1,"aside":[{"space":"","done":1}]}`,
		`{"up_to":1,"aside":[{"space":"a.b","done":1}]}`, `{"up_to":1,"aside":[{"space":"` + strings.Repeat("x", MaxNameLen+1) + `"}]}`, many,
	} {
		if a, err := DecodeAhead([]byte(text)); err == nil || a.UpTo != 0 || a.Aside != nil {
			t.Errorf("%.60s is read as %+v, %v", text, a, err)
		}
	}
}
