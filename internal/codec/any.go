package codec

import (
	"reflect"

	"github.com/settlehq/settle/model"
)

// anyConverter returns the converter of the type any: decoding yields what encoding/json would, and encoding
// uses the converter of the dynamic type.
func anyConverter() converter { return converter{decode: decodeAny, encode: encodeAny} }

func decodeAny(v model.Value, to reflect.Value) error {
	if x := plain(v); x != nil {
		to.Set(reflect.ValueOf(x))
	}
	return nil
}

func encodeAny(from reflect.Value, depth int) (model.Value, error) {
	if from.IsNil() {
		return model.Null(), nil
	}
	x := from.Elem()
	c, err := converterOf(x.Type())
	if err != nil { // the rest is not encoded: an invalid field may not be reached
		c = &textConverter
	}
	return c.encode(x, depth)
}

// plain converts v to nil, bool, float64, string, []any and map[string]any.
func plain(v model.Value) any {
	switch v.Kind() {
	case model.KindBool:
		b, _ := v.AsBool()
		return b
	case model.KindInt, model.KindFloat:
		f, _ := v.AsFloat()
		return f
	case model.KindString:
		s, _ := v.AsString()
		return s
	case model.KindArray:
		a := make([]any, 0, v.Len())
		for x := range v.Elements() {
			a = append(a, plain(x))
		}
		return a
	case model.KindObject:
		m := make(map[string]any, v.Len())
		for k, x := range v.All() {
			m[k] = plain(x)
		}
		return m
	}
	return nil
}
