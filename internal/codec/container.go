package codec

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"unicode/utf8"

	"github.com/settlehq/settle/model"
)

// tooDeep returns an error at depth nested containers. It ends the walk around a cycle.
func tooDeep(depth int) error {
	if depth < model.MaxDepth {
		return nil
	}
	return fmt.Errorf("nested deeper than %d, the limit; does it contain itself?", model.MaxDepth)
}

func (b builder) pointer(c *converter, t reflect.Type) error {
	elem, err := b.converter(t.Elem())
	c.decode = func(v model.Value, to reflect.Value) error {
		if v.IsNull() {
			return nil
		}
		p := reflect.New(t.Elem())
		if err := elem.decode(v, p.Elem()); err != nil {
			return err
		}
		to.Set(p)
		return nil
	}
	c.encode = func(from reflect.Value, depth int) (model.Value, error) {
		if from.IsNil() {
			return model.Null(), nil
		}
		return elem.encode(from.Elem(), depth)
	}
	return err
}

// elements returns the converter of the elements of a slice or array; nil if the elements have none, or
// if the whole value goes through text.
func (b builder) elements(c *converter, t reflect.Type) (*converter, error) {
	if t.Elem().Kind() == reflect.Uint8 { // base64
		*c = textConverter
		return nil, nil
	}
	elem, err := b.converter(t.Elem())
	if err != nil {
		return nil, at("*", err)
	}
	return elem, nil
}

func (b builder) slice(c *converter, t reflect.Type) error {
	elem, err := b.elements(c, t)
	if elem == nil {
		return err
	}
	c.decode = func(v model.Value, to reflect.Value) error {
		if v.Kind() != model.KindArray {
			return orNull(v, "an array")
		}
		s := reflect.MakeSlice(t, v.Len(), v.Len())
		if err := decodeElements(elem, v, s); err != nil {
			return err
		}
		to.Set(s)
		return nil
	}
	c.encode = elem.encodeElements
	return nil
}

func (b builder) array(c *converter, t reflect.Type) error {
	elem, err := b.elements(c, t)
	if elem == nil {
		return err
	}
	c.decode = func(v model.Value, to reflect.Value) error {
		if v.Kind() != model.KindArray {
			return orNull(v, "an array")
		}
		if v.Len() != t.Len() {
			return misfit(v, fmt.Sprintf("one of %d", t.Len()))
		}
		return decodeElements(elem, v, to)
	}
	c.encode = elem.encodeElements
	return nil
}

// decodeElements stores the elements of v in a slice or array of the same length.
func decodeElements(elem *converter, v model.Value, to reflect.Value) error {
	i := 0
	for x := range v.Elements() {
		if err := elem.decode(x, to.Index(i)); err != nil {
			return atIndex(i, err)
		}
		i++
	}
	return nil
}

// encodeElements encodes a slice or array whose elements have converter c.
func (c *converter) encodeElements(from reflect.Value, depth int) (model.Value, error) {
	if err := tooDeep(depth); err != nil {
		return model.Value{}, err
	}
	return model.ArrayFunc(from.Len(), func(i int) (model.Value, error) {
		x, err := c.encode(from.Index(i), depth+1)
		if err != nil {
			return model.Value{}, atIndex(i, err)
		}
		return x, nil
	})
}

func (b builder) mapping(c *converter, t reflect.Type) error {
	elem, err := b.converter(t.Elem())
	if err != nil {
		return at("*", err)
	}
	if t.Key().Kind() != reflect.String || hasMethods(t.Key()) {
		*c = textConverter
		return checkKey(t.Key())
	}
	c.decode = func(v model.Value, to reflect.Value) error {
		if v.Kind() != model.KindObject {
			return orNull(v, "an object")
		}
		m := reflect.MakeMapWithSize(t, v.Len())
		if err := decodeMembers(elem, v, m); err != nil {
			return err
		}
		to.Set(m)
		return nil
	}
	c.encode = elem.encodeMap
	return nil
}

// checkKey returns an error if a type cannot be the key type of a map.
func checkKey(t reflect.Type) error {
	switch t.Kind() {
	case reflect.Bool, reflect.Struct, reflect.Array, reflect.Chan, reflect.Complex64, reflect.Complex128:
		if !hasMethods(t) {
			return problem(fmt.Sprintf("the keys of a map must be strings or numbers, or have MarshalText and UnmarshalText; %s has not", t))
		}
	}
	return nil
}

// decodeMembers stores the members of v in the map m, whose keys are strings.
func decodeMembers(elem *converter, v model.Value, m reflect.Value) error {
	key, x := reflect.New(m.Type().Key()).Elem(), reflect.New(m.Type().Elem()).Elem()
	for k, member := range v.All() {
		key.SetString(k)
		x.SetZero()
		if err := elem.decode(member, x); err != nil {
			return at(k, err)
		}
		m.SetMapIndex(key, x)
	}
	return nil
}

// member is an entry of a map.
type member struct {
	key   string
	value model.Value
}

// encodeMap encodes a map from strings to values of converter c.
func (c *converter) encodeMap(from reflect.Value, depth int) (model.Value, error) {
	if err := tooDeep(depth); err != nil {
		return model.Value{}, err
	}
	members, err := c.members(from, depth)
	if err != nil {
		return model.Value{}, err
	}
	keys := make([]string, len(members))
	for i, m := range members {
		keys[i] = m.key
	}
	made, err := model.KeysOf(keys)
	if err != nil {
		return model.Value{}, err
	}
	return made.Object(func(i int) (model.Value, error) { return orNullValue(members[i].value), nil })
}

// members returns the entries of a map, sorted by key, or the error of the first entry that has
// one.
func (c *converter) members(from reflect.Value, depth int) (members []member, first error) {
	members = make([]member, 0, from.Len())
	failed := ""
	k, x := reflect.New(from.Type().Key()).Elem(), reflect.New(from.Type().Elem()).Elem()
	for entries := from.MapRange(); entries.Next(); {
		k.SetIterKey(entries)
		x.SetIterValue(entries)
		m, err := c.member(k.String(), x, depth)
		if err != nil && (first == nil || m.key < failed) {
			first, failed = err, m.key
		}
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b member) int { return cmp.Compare(a.key, b.key) })
	return members, first
}

func (c *converter) member(key string, x reflect.Value, depth int) (member, error) {
	v, err := c.encode(x, depth+1)
	switch {
	case !utf8.ValidString(key):
		err = problem("a key is not valid UTF-8")
	case err != nil:
		err = at(key, err)
	}
	return member{key, v}, err
}

// orNullValue returns v, or null if v is absent.
func orNullValue(v model.Value) model.Value {
	if v.IsAbsent() {
		return model.Null()
	}
	return v
}
