package codec

import (
	"reflect"
	"time"

	"github.com/settlehq/settle/model"
)

// A model.Value inside a Go value is used unchanged.
var valueConverter = converter{
	decode: func(v model.Value, to reflect.Value) error {
		*to.Addr().Interface().(*model.Value) = v
		return nil
	},
	encode: func(from reflect.Value, _ int) (model.Value, error) {
		return *addressed(from).Interface().(*model.Value), nil
	},
}

var linkConverter = converter{
	decode: func(v model.Value, to reflect.Value) error {
		l, ok := v.AsLink()
		if !ok {
			return misfit(v, "a link")
		}
		*to.Addr().Interface().(*model.Link) = l
		return nil
	},
	encode: func(from reflect.Value, _ int) (model.Value, error) {
		v, err := model.Of(*addressed(from).Interface().(*model.Link))
		if err != nil {
			return model.Value{}, inText(err)
		}
		return v, nil
	},
}

var timeConverter = converter{
	decode: func(v model.Value, to reflect.Value) error {
		s, ok := v.AsString()
		if !ok {
			return orNull(v, "a time")
		}
		t, ok := parseTime(s)
		if !ok {
			return misfit(v, "a time as in RFC 3339, 2006-01-02T15:04:05Z,")
		}
		*to.Addr().Interface().(*time.Time) = t
		return nil
	},
	encode: func(from reflect.Value, _ int) (model.Value, error) {
		text, err := addressed(from).Interface().(*time.Time).MarshalText()
		if err != nil {
			return model.Value{}, problem(err.Error())
		}
		return model.String(string(text)), nil
	},
}

// parseTime parses a time. The format that Encode writes is parsed directly; for other forms of RFC
// 3339 the JSON package, which is stricter than package time, decides.
func parseTime(s string) (t time.Time, ok bool) {
	if err := t.UnmarshalText([]byte(s)); err != nil {
		return time.Time{}, false
	}
	var again [len(time.RFC3339Nano)]byte
	if string(t.AppendFormat(again[:0], time.RFC3339Nano)) == s {
		return t, true
	}
	err := model.String(s).Decode(&t)
	return t, err == nil
}

// addressed returns a pointer to from, or to a copy if it is not addressable.
func addressed(from reflect.Value) reflect.Value {
	if from.CanAddr() {
		return from.Addr()
	}
	p := reflect.New(from.Type())
	p.Elem().Set(from)
	return p
}

// textConverter goes through JSON text.
var textConverter = converter{
	decode: func(v model.Value, to reflect.Value) error {
		return inText(v.Decode(to.Addr().Interface()))
	},
	encode: func(from reflect.Value, _ int) (model.Value, error) {
		v, err := model.Of(addressed(from).Interface())
		return v, inText(err)
	},
}
