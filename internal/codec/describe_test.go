package codec

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/internal/shape"
	"github.com/settlehq/settle/model"
)

// isOf returns why a value is not of a type, "" if it is.
func isOf(v model.Value, t *shape.Type, types map[string]*shape.Type) string {
	if v.IsNull() && t.Nullable {
		return ""
	}
	kinds := map[shape.Kind][]model.Kind{
		shape.String: {model.KindString}, shape.Bool: {model.KindBool}, shape.Int: {model.KindInt, model.KindFloat /* beyond 64 bits with a sign */}, shape.Float: {model.KindInt, model.KindFloat},
		shape.List: {model.KindArray}, shape.Dict: {model.KindObject}, shape.Object: {model.KindObject},
	}
	switch t.Kind {
	case shape.Any:
		return ""
	case shape.Named:
		return isOf(v, types[t.Name], types)
	}
	if !slices.Contains(kinds[t.Kind], v.Kind()) {
		return fmt.Sprintf("%s is no %s", v, t.Kind)
	}
	switch t.Kind {
	case shape.List:
		for x := range v.Elements() {
			if wrong := isOf(x, t.Elem, types); wrong != "" {
				return wrong
			}
		}
	case shape.Dict:
		for _, x := range v.All() {
			if wrong := isOf(x, t.Elem, types); wrong != "" {
				return wrong
			}
		}
	case shape.Object:
		return isObject(v, t, types)
	}
	return ""
}

func isObject(v model.Value, t *shape.Type, types map[string]*shape.Type) string {
	known := 0
	for _, f := range t.Fields {
		x := v.Get(f.Name)
		if x.IsAbsent() {
			if !f.Optional {
				return fmt.Sprintf("%s has no %s", v, f.Name)
			}
			continue
		}
		known++
		if wrong := isOf(x, f.Type, types); wrong != "" && !(f.Optional && x.IsNull()) {
			return f.Name + ": " + wrong
		}
	}
	if known != v.Len() {
		return fmt.Sprintf("%s has more than the fields %v", v, t.Fields)
	}
	return ""
}

// Whatever a program writes is of the type that its clients are generated with.
func TestDescribe_IsTheTypeOfWhatIsEncoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := genType(3).Draw(t, "type")
		c, err := converterOf(typ)
		if err != nil {
			t.Fatalf("%s: %v", typ, err)
		}
		v, err := c.encode(genGo(t, typ, 4), 0)
		if err != nil || v.IsAbsent() {
			return
		}
		var d Describer
		if described := d.of(typ); isOf(v, described, d.Types) != "" {
			t.Fatalf("%s as %+v: %s", typ, described, isOf(v, described, d.Types))
		}
	})
}

func TestDescribe_NamesStructsOnceAndThoseWithinThemselves(t *testing.T) {
	type pair[T any] struct{ A, B T }
	var d Describer
	if got := d.Describe(reflect.TypeFor[journey]()); got.Kind != shape.Named || got.Name != "journey" {
		t.Errorf("a named struct is %+v", got)
	}
	list := new(Describer) // of structs that have such lists
	if elem := list.Describe(reflect.TypeFor[[]journey]()).Elem; elem.Name != "journey" {
		t.Errorf("the elements of a list are %+v", elem)
	}
	for _, types := range []map[string]*shape.Type{d.Types, list.Types} {
		for _, f := range types["journey"].Fields {
			if f.Name == "kids" && (f.Type.Kind != shape.List || f.Type.Elem.Name != "journey") {
				t.Errorf("the type within itself is %+v", f.Type)
			}
		}
	}
	if one, other := d.Describe(reflect.TypeFor[pair[int]]()), d.Describe(reflect.TypeFor[pair[string]]()); one.Name != "pairint" || other.Name != "pairstring" {
		t.Errorf("types with parameters are %s and %s", one.Name, other.Name)
	}
	if got := d.Describe(reflect.TypeFor[struct{}]()); got.Kind != shape.None {
		t.Errorf("a struct without fields is %+v", got)
	}
}
