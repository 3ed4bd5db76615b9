package flow

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// The arguments of a workflow in Go are the fields of its struct, by the rules of encoding/json.
func TestArguments_AreTheFieldsOfTheStruct(t *testing.T) {
	type shared struct {
		Priority int
	}
	type order struct {
		shared
		Version string `json:"version,omitempty"`
		Nested  struct{ N int }
		Not     int `json:"-"`
		hidden  int
	}
	_ = order{}.hidden
	check := fits[order]("release")
	for args, want := range map[string]string{
		`{}`: "",
		`{"version":"1","Priority":2,"nested":{"N":1,"more":true}}`: "",
		`{"versoin":"1"}`: `workflow release has no argument "versoin"; it has Priority, version, Nested`,
		`{"Not":1}`:       `no argument "Not"`,
		`{"hidden":1}`:    `no argument "hidden"`,
		`{"version":1}`:   "the arguments do not fit workflow release",
	} {
		if err := check(jsontext.Value(args)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
	for _, any := range []error{fits[any]("w")(jsontext.Value(`{"x":1}`)), fits[map[string]int]("w")(jsontext.Value(`{"x":1}`)), fits[jsontext.Value]("w")(jsontext.Value(`{"x":1}`)), fits[*order]("w")(jsontext.Value(`{"version":"x"}`))} {
		if any != nil {
			t.Error(any)
		}
	}
}
