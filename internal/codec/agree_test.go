package codec

import (
	"math"
	"reflect"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	_ "github.com/settlehq/settle/internal/seeded" // see there
	"github.com/settlehq/settle/model"
)

// The oracle is the pair of functions that a Codec replaces: model.Of and Value.Decode, through text.

// encodesAlike compares the converter of t with model.Of.
func encodesAlike(t rapid.TB, c *converter, x reflect.Value) (model.Value, bool) {
	got, err := c.encode(x, 0)
	want, wantErr := model.Of(addressed(x).Interface()) // of a pointer: always through text
	got = orNullValue(got)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%s %#v is %s, %v; through text it is %s, %v", x.Type(), x, got, err, want, wantErr)
	}
	if err == nil && !model.Equal(got, want) {
		t.Fatalf("%s %#v is\n%s, through text\n%s", x.Type(), x, got, want)
	}
	return want, err == nil
}

// decodesAlike compares the converter of a type with Value.Decode.
func decodesAlike(t rapid.TB, c *converter, typ reflect.Type, v model.Value) {
	got, want := reflect.New(typ), reflect.New(typ)
	err := c.decode(v, got.Elem())
	wantErr := v.Decode(want.Interface())
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%s as %s: %v; through text: %v", v, typ, err, wantErr)
	}
	if err == nil && !alike(got.Elem(), want.Elem()) {
		t.Fatalf("%s as %s is\n%#v, through text\n%#v", v, typ, got.Elem(), want.Elem())
	}
}

// alike is reflect.DeepEqual that compares model.Values by their contents.
func alike(a, b reflect.Value) bool {
	if a.IsValid() != b.IsValid() || a.IsValid() && a.Type() != b.Type() {
		return false
	}
	if !a.IsValid() {
		return true
	}
	if a.Type() == valueType {
		return model.Equal(a.Interface().(model.Value), b.Interface().(model.Value))
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface:
		return a.IsNil() == b.IsNil() && (a.IsNil() || alike(a.Elem(), b.Elem()))
	case reflect.Slice:
		return a.IsNil() == b.IsNil() && alikeElements(a, b)
	case reflect.Array:
		return alikeElements(a, b)
	case reflect.Map:
		return a.IsNil() == b.IsNil() && alikeMaps(a, b)
	case reflect.Struct:
		if a.Type() == timeType {
			return reflect.DeepEqual(a.Interface(), b.Interface())
		}
		for i := range a.NumField() {
			if a.Type().Field(i).IsExported() && !alike(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

func alikeElements(a, b reflect.Value) bool {
	if a.Len() != b.Len() {
		return false
	}
	for i := range a.Len() {
		if !alike(a.Index(i), b.Index(i)) {
			return false
		}
	}
	return true
}

func alikeMaps(a, b reflect.Value) bool {
	if a.Len() != b.Len() {
		return false
	}
	for _, k := range a.MapKeys() {
		if x := b.MapIndex(k); !x.IsValid() || !alike(a.MapIndex(k), x) {
			return false
		}
	}
	return true
}

func TestCodec_EqualsModelOfAndValueDecode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := genType(3).Draw(t, "type")
		c, err := converterOf(typ)
		if err != nil {
			t.Fatalf("%s: %v", typ, err)
		}
		v, ok := encodesAlike(t, c, genGo(t, typ, 4))
		if !ok || rapid.IntRange(0, 3).Draw(t, "stranger") == 0 {
			v = genValue(3).Draw(t, "v")
		}
		if rapid.Bool().Draw(t, "spoilt") {
			v = spoil(t, v)
		}
		decodesAlike(t, c, typ, v)
	})
}

func FuzzDecode_EqualsValueDecode(f *testing.F) {
	for _, text := range []string{
		`{"id":"a","legs":[{"from":"RIX","delay":3,"at":"2026-11-22T07:00:00Z"}],"more":{"k":1e300}}`,
		`{"legs":[{"delay":"x"}]}`, `{"legs":null,"kids":[{"id":"b"}]}`, `[]`, `null`, `{"ratio":1e40}`,
		`{"big":18446744073709550000,"ratio":0.1,"small":128}`, `{"name":"é\u0000","raw":{"a":[1]},"at":"2026-11-22T7:00:00Z"}`,
	} {
		f.Add([]byte(text))
	}
	typ := reflect.TypeFor[journey]()
	c, err := converterOf(typ)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := model.ParseValue(text)
		if err != nil {
			return
		}
		decodesAlike(t, c, typ, v)
		x := reflect.New(typ)
		if c.decode(v, x.Elem()) == nil {
			encodesAlike(t, c, x.Elem())
		}
	})
}

// genType generates Go types: scalars, named types, and compositions of them.
func genType(depth int) *rapid.Generator[reflect.Type] {
	leaf := rapid.SampledFrom(leaves)
	if depth == 0 {
		return leaf
	}
	return rapid.OneOf(leaf, rapid.Custom(func(t *rapid.T) reflect.Type {
		elem := func() reflect.Type { return genType(depth-1).Draw(t, "element") }
		switch rapid.IntRange(0, 6).Draw(t, "kind") {
		case 0:
			return reflect.SliceOf(elem())
		case 1:
			return reflect.ArrayOf(rapid.IntRange(0, 2).Draw(t, "length"), elem())
		case 2:
			return reflect.PointerTo(elem())
		case 3:
			return reflect.MapOf(rapid.SampledFrom(keys).Draw(t, "key"), elem())
		}
		return genStruct(t, elem)
	}))
}

func genStruct(t *rapid.T, elem func() reflect.Type) reflect.Type {
	fields := make([]reflect.StructField, rapid.IntRange(0, 4).Draw(t, "fields"))
	for i := range fields {
		name := rapid.SampledFrom([]string{"", "a", "b", "ключ", "a b"}).Draw(t, "name")
		if name != "" {
			name += strconv.Itoa(i)
		}
		option := rapid.SampledFrom([]string{"", ",omitempty", ",omitzero", ",omitzero,omitempty", ",case:ignore"}).Draw(t, "option")
		fields[i] = reflect.StructField{
			Name: string(rune('A' + i)),
			Type: elem(),
			Tag:  reflect.StructTag(`json:"` + name + option + `"`),
		}
		if rapid.IntRange(0, 9).Draw(t, "without") == 0 {
			fields[i].Tag = `json:"-"`
		}
	}
	return reflect.StructOf(fields)
}

// genGo generates a value of type t.
func genGo(t *rapid.T, typ reflect.Type, depth int) reflect.Value {
	x := reflect.New(typ).Elem()
	switch typ {
	case valueType:
		x.Set(reflect.ValueOf(rapid.OneOf(genValue(2), rapid.Just(model.Value{})).Draw(t, "value")))
		return x
	case timeType:
		at := time.Unix(rapid.Int64Range(-1<<36, 1<<38).Draw(t, "time"), rapid.Int64Range(0, 1e9-1).Draw(t, "ns"))
		zone := time.FixedZone("", rapid.SampledFrom([]int{0, 3600, -5400, 24 * 3600, 61}).Draw(t, "zone"))
		x.Set(reflect.ValueOf(at.In(zone)))
		return x
	case anyType:
		if rapid.Bool().Draw(t, "something") && depth > 0 {
			x.Set(genGo(t, genType(1).Draw(t, "dynamic"), depth-1))
		}
		return x
	case reflect.TypeFor[money]():
		x.Set(reflect.ValueOf(money{rapid.Int64().Draw(t, "cents")}))
		return x
	}
	few := func() int { return rapid.IntRange(0, max(0, min(3, depth))).Draw(t, "n") }
	switch typ.Kind() {
	case reflect.Bool:
		x.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.String:
		x.SetString(rapid.OneOf(rapid.String(), rapid.Just("\xff"), rapid.Just("")).Draw(t, "string"))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		x.SetInt(rapid.Int64().Draw(t, "int"))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		x.SetUint(rapid.Uint64().Draw(t, "uint"))
	case reflect.Float32, reflect.Float64:
		x.SetFloat(genFloat().Draw(t, "float"))
	case reflect.Pointer:
		if depth > 0 && rapid.Bool().Draw(t, "pointer") {
			x.Set(genGo(t, typ.Elem(), depth-1).Addr())
		}
	case reflect.Slice:
		for n := few(); n > 0; n-- {
			x.Set(reflect.Append(x, genGo(t, typ.Elem(), depth-1)))
		}
	case reflect.Array:
		for i := range typ.Len() {
			x.Index(i).Set(genGo(t, typ.Elem(), depth-1))
		}
	case reflect.Map:
		for n := few(); n > 0; n-- {
			if x.IsNil() {
				x.Set(reflect.MakeMap(typ))
			}
			x.SetMapIndex(genGo(t, typ.Key(), 0), genGo(t, typ.Elem(), depth-1))
		}
	case reflect.Struct:
		for i := range typ.NumField() {
			if typ.Field(i).IsExported() || typ.Field(i).Anonymous && typ.Field(i).Type.Kind() == reflect.Struct {
				fill(t, x.Field(i), depth)
			}
		}
	}
	return x
}

// fill sets a field; in an embedded unexported field, it sets the settable fields.
func fill(t *rapid.T, x reflect.Value, depth int) {
	if x.CanSet() {
		x.Set(genGo(t, x.Type(), depth))
		return
	}
	for i := range x.NumField() {
		fill(t, x.Field(i), depth)
	}
}

func genFloat() *rapid.Generator[float64] {
	return rapid.OneOf(rapid.Float64(), rapid.Map(rapid.Float32(), func(f float32) float64 { return float64(f) }),
		rapid.SampledFrom([]float64{
			0, 1, -1, 0.1, 1 << 24, 1<<24 + 1, 1 << 53, 1 << 62, 1 << 63, 1 << 64, 1e20, 1e21, 1e40, 1 + 1./(1<<24),
			math.Copysign(0, -1), math.NaN(), math.Inf(1), math.MaxFloat32, math.SmallestNonzeroFloat32, math.MaxFloat64,
		}))
}

// genValue generates values, some of which resemble those that the types of these tests expect.
func genValue(depth int) *rapid.Generator[model.Value] {
	scalar := rapid.OneOf(
		rapid.Just(model.Null()), rapid.Map(rapid.Bool(), model.Bool), rapid.Map(rapid.Int64(), model.Int),
		rapid.Map(rapid.Int64Range(-300, 300), model.Int), rapid.Map(genFloat(), model.Float), rapid.Map(rapid.String(), model.String),
		rapid.Map(rapid.SampledFrom([]string{"", "1", "null", "2026-11-22T07:00:00Z", "2026-11-22T07:00:00.5+02:00", "2026-11-22T7:00:00Z", "2026-11-22T07:00:00,5Z", "2026-11-22T07:00:00.50Z", "aGk=", "low", "1.50 EUR"}), model.String),
		rapid.Just(model.Link{Doc: "stats", Path: model.Path{"a"}}.Value()),
	)
	if depth == 0 {
		return scalar
	}
	return rapid.OneOf(scalar, rapid.Custom(func(t *rapid.T) model.Value {
		if rapid.Bool().Draw(t, "array") {
			return model.Array(rapid.SliceOfN(genValue(depth-1), 0, 3).Draw(t, "elements")...)
		}
		var fields []model.Field
		for _, name := range rapid.SliceOfN(rapid.SampledFrom(names), 0, 4).Draw(t, "names") {
			fields = append(fields, model.Field{Key: name, Value: genValue(depth-1).Draw(t, "member")})
		}
		return model.Object(fields...)
	}))
}

var names = []string{"", "A", "B", "a0", "A0", "b1", "ключ0", "1", "id", "legs", "from", "delay", "low", "kids"}

// spoil replaces a value at a place in v.
func spoil(t *rapid.T, v model.Value) model.Value {
	var p model.Path
	for at := v; at.Len() > 0 && rapid.IntRange(0, 3).Draw(t, "deeper") > 0; {
		step := strconv.Itoa(rapid.IntRange(0, at.Len()-1).Draw(t, "index"))
		if at.Kind() == model.KindObject {
			step = rapid.SampledFrom(at.Keys()).Draw(t, "key")
		}
		p, at = append(p, step), at.At(model.Path{step})
	}
	if len(p) == 0 {
		return genValue(1).Draw(t, "instead")
	}
	spoilt, err := v.Set(p, genValue(1).Draw(t, "instead"))
	if err != nil {
		t.Fatal(err)
	}
	return spoilt
}
