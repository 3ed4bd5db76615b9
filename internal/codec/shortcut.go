package codec

import (
	"reflect"

	"github.com/settlehq/settle/model"
)

// shortcut sets decode and encode if they need no reflection: T is a scalar or a type that model.Of
// converts directly. The latter must go through model.Of, because it does not round a float at the
// root or in a []any to its text.
func (s *Codec[T]) shortcut() {
	switch s := any(s).(type) {
	case *Codec[string]:
		s.decode = model.Value.AsString
	case *Codec[bool]:
		s.decode = model.Value.AsBool
		s.encode = func(b bool) (model.Value, error) { return model.Bool(b), nil }
	case *Codec[int64]:
		s.decode = model.Value.AsInt
		s.encode = func(i int64) (model.Value, error) { return model.Int(i), nil }
	case *Codec[int]:
		s.decode = decodeInt
		s.encode = func(i int) (model.Value, error) { return model.Int(int64(i)), nil }
	case *Codec[float64]:
		s.decode = model.Value.AsFloat
	case *Codec[model.Value]:
		s.decode = func(v model.Value) (model.Value, bool) { return v, true }
	}
	if s.encode == nil && direct(reflect.TypeFor[T]()) {
		s.encode = func(t T) (model.Value, error) {
			v, err := model.Of(t)
			return v, inText(err)
		}
	}
}

func decodeInt(v model.Value) (int, bool) {
	i, ok := v.AsInt()
	return int(i), ok && int64(int(i)) == i
}

// direct reports whether model.Of converts a t without text. An interface may contain a value for
// which it does.
func direct(t reflect.Type) bool {
	if t.Kind() == reflect.Interface {
		return true
	}
	switch reflect.Zero(t).Interface().(type) {
	case model.Value, model.Link, bool, string, int, int64, int32, uint64, uint32, uint, float64,
		[]any, []model.Value, []string, map[string]any, map[string]model.Value:
		return true
	}
	return false
}
