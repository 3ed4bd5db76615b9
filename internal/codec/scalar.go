package codec

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/settlehq/settle/model"
)

var boolConverter = converter{
	decode: func(v model.Value, to reflect.Value) error {
		b, ok := v.AsBool()
		if !ok {
			return orNull(v, "true or false")
		}
		to.SetBool(b)
		return nil
	},
	encode: func(from reflect.Value, _ int) (model.Value, error) { return model.Bool(from.Bool()), nil },
}

var stringConverter = converter{
	decode: func(v model.Value, to reflect.Value) error {
		s, ok := v.AsString()
		if !ok {
			return orNull(v, "a string")
		}
		to.SetString(s)
		return nil
	},
	encode: func(from reflect.Value, _ int) (model.Value, error) { return encodeString(from.String()) },
}

func encodeString(s string) (model.Value, error) {
	if !utf8.ValidString(s) {
		return model.Value{}, problem("the string is not valid UTF-8")
	}
	return model.String(s), nil
}

// orNull returns the error of finding v where something else was expected. null is accepted: it
// means the zero value, which the target has already.
func orNull(v model.Value, wanted string) error {
	if v.IsNull() {
		return nil
	}
	return misfit(v, wanted)
}

func intConverter(t reflect.Type) converter {
	least := int64(math.MinInt64) >> (64 - t.Bits())
	return converter{
		decode: func(v model.Value, to reflect.Value) error {
			i, ok := v.AsInt()
			if !ok {
				return orNull(v, "an integer")
			}
			if to.OverflowInt(i) {
				return misfit(v, fmt.Sprintf("an integer from %d to %d", least, -(least+1)))
			}
			to.SetInt(i)
			return nil
		},
		encode: func(from reflect.Value, _ int) (model.Value, error) { return model.Int(from.Int()), nil },
	}
}

func uintConverter(t reflect.Type) converter {
	most := uint64(math.MaxUint64) >> (64 - t.Bits())
	wanted := fmt.Sprintf("an integer from 0 to %d", most)
	return converter{
		decode: func(v model.Value, to reflect.Value) error {
			i, ok := v.AsInt()
			switch {
			case !ok && v.Kind() == model.KindFloat && v.Decode(to.Addr().Interface()) == nil:
				return nil // between int64 and uint64
			case !ok:
				return orNull(v, "an integer")
			case i < 0 || to.OverflowUint(uint64(i)):
				return misfit(v, wanted)
			}
			to.SetUint(uint64(i))
			return nil
		},
		encode: func(from reflect.Value, _ int) (model.Value, error) {
			u := from.Uint()
			if u > math.MaxInt64 {
				return model.Float(float64(u)), nil
			}
			return model.Int(int64(u)), nil
		},
	}
}

// exact is the bound up to which a float64 holds all integers.
const exact = 1 << 53

var float64Converter = converter{
	decode: func(v model.Value, to reflect.Value) error {
		f, ok := v.AsFloat()
		if !ok {
			return orNull(v, "a number")
		}
		to.SetFloat(f)
		return nil
	},
	encode: func(from reflect.Value, _ int) (model.Value, error) {
		f := from.Float()
		if f == math.Trunc(f) && math.Abs(f) > exact || math.IsNaN(f) {
			return decimal(f, 64)
		}
		return model.Float(f), nil
	},
}

// A float32 is encoded as its shortest decimal text, 0.1 and not 0.10000000149011612.
var float32Converter = converter{
	decode: func(v model.Value, to reflect.Value) error {
		f, ok := v.AsFloat()
		if !ok {
			return orNull(v, "a number")
		}
		if i, ok := v.AsInt(); ok {
			to.SetFloat(float64(float32(i)))
			return nil
		}
		if float64(float32(f)) != f { // rounding twice may yield a number other than the text
			var err error
			if f, err = strconv.ParseFloat(v.String(), 32); err != nil {
				return misfit(v, "a number that a float32 can hold")
			}
		}
		to.SetFloat(f)
		return nil
	},
	encode: func(from reflect.Value, _ int) (model.Value, error) {
		f := from.Float()
		if f == math.Trunc(f) && math.Abs(f) < 1<<24 {
			return model.Float(f), nil
		}
		return decimal(f, 32)
	},
}

// decimal returns the number that the text of f represents.
func decimal(f float64, bits int) (model.Value, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return model.Value{}, problem(fmt.Sprintf("%v is not a JSON number", f))
	}
	return model.ParseValue(jsontext.AppendFloat(nil, f, bits))
}
