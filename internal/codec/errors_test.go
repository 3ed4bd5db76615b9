package codec

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
)

// refusal returns the error of decoding a text to T.
func refusal[T any](t *testing.T, text string) string {
	t.Helper()
	s, err := Of[T]()
	if err != nil {
		t.Fatal(err)
	}
	v, err := model.ParseValue([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Decode(v)
	if err == nil {
		t.Fatalf("%s is accepted as %T", text, got)
	}
	var e *Error
	if !errors.As(err, &e) {
		t.Errorf("%v is no *Error", err)
	}
	if !reflect.ValueOf(&got).Elem().IsZero() {
		t.Errorf("%s is refused, and still gives %v", text, got)
	}
	return err.Error()
}

func TestDecode_ErrorsNameThePlaceAndWhatIsWanted(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{refusal[journey](t, `{"legs":[{"delay":"x"}]}`), `/legs/0/delay: a string is here; an integer is wanted`},
		{refusal[journey](t, `{"legs":{}}`), `/legs: an object is here; an array is wanted`},
		{refusal[journey](t, `{"legs":[3]}`), `/legs/0: an integer is here; an object is wanted`},
		{refusal[journey](t, `{"by":{"a/b":{"from":[1]}}}`), `/by/a~1b/from: an array of 1 is here; a string is wanted`},
		{refusal[journey](t, `{"small":300}`), `/small: an integer is here; an integer from -128 to 127 is wanted`},
		{refusal[journey](t, `{"small":0.5}`), `/small: a number is here; an integer is wanted`},
		{refusal[journey](t, `{"big":-1}`), `/big: an integer is here; an integer from 0 to 18446744073709551615 is wanted`},
		{refusal[journey](t, `{"ratio":1e300}`), `/ratio: a number is here; a number that a float32 can hold is wanted`},
		{refusal[journey](t, `{"first":{"at":"noon"}}`), `/first/at: a string is here; a time as in RFC 3339, 2006-01-02T15:04:05Z, is wanted`},
		{refusal[journey](t, `{"price":"3"}`), `/price: no money`},
		{refusal[journey](t, `{"deep":{"a":{"1":"x"}}}`), `/deep/a/1: a JSON string does not fit int`},
		{refusal[[2]int](t, `[1,2,3]`), `an array of 3 is here; one of 2 is wanted`},
		{refusal[int64](t, `"x"`), `a string is here; an integer is wanted`},
		{refusal[string](t, `true`), `a bool is here; a string is wanted`},
		{refusal[bool](t, `"`+strings.Repeat("é", 50)+`"`), `a string is here; true or false is wanted`},
		{refusal[model.Link](t, `null`), `null is here; a link is wanted`},
		{refusal[stringly](t, `{"n":7}`), `/n: a JSON number does not fit int64`},
	} {
		if c.got != c.want {
			t.Errorf("\n%s\nwant\n%s", c.got, c.want)
		}
	}
}

func TestEncode_ErrorsNameThePlace(t *testing.T) {
	s, err := Of[journey]()
	if err != nil {
		t.Fatal(err)
	}
	for want, j := range map[string]journey{
		`/ratio: NaN is not a JSON number`:                            {Ratio: float32(math.NaN())},
		`/legs/1/from: the string is not valid UTF-8`:                 {Legs: []leg{{}, {From: "\xff"}}},
		`/by: a key is not valid UTF-8`:                               {By: map[airport]leg{"\xff": {}}},
		`/by/b/from: the string is not valid UTF-8`:                   {By: map[airport]leg{"b": {From: "\xff"}, "c": {From: "\xff"}}},
		`/more/0: +Inf is not a JSON number`:                          {More: []any{math.Inf(1)}},
		`/first/at: Time.MarshalText: year outside of range [0,9999]`: {First: &leg{At: time.Unix(1<<40, 0)}},
	} {
		if _, err := s.Encode(j); err == nil || err.Error() != want {
			t.Errorf("\n%v\nwant\n%s", err, want)
		}
	}
}

// declared returns the error of Of.
func declared[T any](t *testing.T) string {
	t.Helper()
	if _, err := Of[T](); err != nil {
		return err.Error()
	}
	t.Errorf("%s can be part of a document", reflect.TypeFor[T]())
	return ""
}

func TestOf_RefusesWhatCannotBeADocument(t *testing.T) {
	type withChan struct {
		Legs []struct {
			C chan int `json:"c"`
		} `json:"legs"`
	}
	type typo struct {
		A int `json:"a,omitEmpty"` //nolint:staticcheck // the slip is the point
	}
	integer := reflect.TypeFor[int]()
	_, twice := converterOf(reflect.StructOf([]reflect.StructField{{Name: "A", Type: integer, Tag: `json:"x"`}, {Name: "B", Type: integer, Tag: `json:"x"`}}))
	type formatted struct {
		A time.Time `json:"a,format:DateOnly"`
	}
	type dur struct {
		Delay time.Duration `json:"delay"`
	}
	for want, got := range map[string]string{
		`, /legs/*/c: a chan cannot be part of a document`:         declared[withChan](t),
		`func(): a func cannot be part of a document`:              declared[func()](t),
		`complex128: a complex128 cannot`:                          declared[complex128](t),
		`map[string]chan int, /*: a chan cannot`:                   declared[map[string]chan int](t),
		"specify `omitempty` instead":                              declared[typo](t),
		`conflict over JSON object name "x"`:                       twice.Error(),
		`has unsupported`:                                          declared[formatted](t),
		`, /delay: a time.Duration has no form of its own in JSON`: declared[dur](t),
		`, /base: the embedded base is not exported`:               declared[named](t),
		`the keys of a map must be strings or numbers`:             declared[map[[2]int]int](t),
	} {
		if !strings.Contains(got, want) {
			t.Errorf("\n%s\nwant\n%s", got, want)
		}
	}
}

// A type that is refused at its declaration could not have been stored either.
func TestOf_RefusesADurationAsModelOfDoes(t *testing.T) {
	if v, err := model.Of(time.Second); err == nil {
		t.Errorf("a duration is %s now: give it a converter", v)
	}
	if err := model.Int(1).Decode(new(time.Duration)); err == nil {
		t.Error("a number is a duration now: give it a converter")
	}
}

func TestField_IsTheTypeOfAPlace(t *testing.T) {
	j := reflect.TypeFor[*journey]()
	for _, c := range []struct {
		want reflect.Type
		path string
	}{
		{j, ""},
		{reflect.TypeFor[string](), "/id"},
		{reflect.TypeFor[int](), "/legs/0/delay"},
		{reflect.TypeFor[*leg](), "/first"},
		{timeType, "/first/at"},
		{reflect.TypeFor[airport](), "/by/RIX/from"},
		{valueType, "/raw/whatever/0"},
		{anyType, "/more/whatever"},
		{reflect.TypeFor[int](), "/deep/a/1"},
		{reflect.TypeFor[int8](), "/kids/0/kids/12/small"},
	} {
		path, err := model.ParsePath(c.path)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Field(j, path...); err != nil || got != c.want {
			t.Errorf("%s is a %v, not a %v: %v", c.path, got, c.want, err)
		}
	}
	if got, err := Field(reflect.TypeFor[inlined](), "id"); err != nil || got.Kind() != reflect.String {
		t.Errorf("the field of an embedded struct: %v, %v", got, err)
	}
	if got, err := Field(reflect.TypeFor[pointing](), "More"); err != nil || got.Kind() != reflect.String {
		t.Errorf("the field of an embedded pointer: %v, %v", got, err)
	}
}

func TestField_SaysWhatThereIs(t *testing.T) {
	for want, path := range map[string][]string{
		`codec.journey has no /legs/0/dely: did you mean "delay"? there is at, delay, from, to`: {"legs", "0", "dely"},
		`codec.journey has no /legs/0/nothing: there is at, delay, from, to`:                    {"legs", "0", "nothing"},
		`codec.journey has no /legs/first: a []codec.leg is an array, and "first" is no index`:  {"legs", "first"},
		`codec.journey has no /id/x: a string has no parts`:                                     {"id", "x"},
		`codec.journey has no /price/cents: a codec.money writes its JSON itself`:               {"price", "cents"},
		`codec.journey has no /Skip: `:                                                          {"Skip"},
		`codec.journey has no /ID: did you mean "id"?`:                                          {"ID"},
	} {
		if got, err := Field(reflect.TypeFor[journey](), path...); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, %v\nwant %s", got, err, want)
		}
	}
	if _, err := Field(reflect.TypeFor[stringly](), "n"); err == nil {
		t.Error("a number that is stored as a string can be read as a number")
	}
}
