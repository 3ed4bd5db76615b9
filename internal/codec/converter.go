package codec

import (
	"encoding"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/settlehq/settle/model"
)

// converter converts between values of one Go type and documents.
type converter struct {
	// decode stores v, which is not absent, in to, which is settable and the zero value.
	decode func(v model.Value, to reflect.Value) error
	// encode returns from as a value nested in depth containers. An absent result becomes null
	// inside a container.
	encode func(from reflect.Value, depth int) (model.Value, error)
}

// converters are the complete converters, by type.
var converters sync.Map // of reflect.Type to *converter

// converterOf returns the converter of t, or an error if t cannot be encoded.
func converterOf(t reflect.Type) (*converter, error) {
	if c, ok := converters.Load(t); ok {
		return c.(*converter), nil
	}
	b := builder{}
	c, err := b.converter(t)
	if err != nil {
		return nil, err
	}
	for t, c := range b { // any order: each is stored under its own type
		converters.LoadOrStore(t, c)
	}
	return c, nil
}

// builder compiles one type and all types that it contains. It holds incomplete converters, so that a
// type may contain itself.
type builder map[reflect.Type]*converter

func (b builder) converter(t reflect.Type) (*converter, error) {
	if c, ok := converters.Load(t); ok {
		return c.(*converter), nil
	}
	if c, ok := b[t]; ok {
		return c, nil
	}
	c := new(converter)
	b[t] = c
	return c, b.compile(c, t)
}

// Types that have a converter of their own although they have methods or another kind.
var (
	valueType    = reflect.TypeFor[model.Value]()
	linkType     = reflect.TypeFor[model.Link]()
	timeType     = reflect.TypeFor[time.Time]()
	durationType = reflect.TypeFor[time.Duration]()
	anyType      = reflect.TypeFor[any]()
)

// compile sets the functions of c, the converter of t.
func (b builder) compile(c *converter, t reflect.Type) error {
	switch t {
	case valueType:
		*c = valueConverter
		return nil
	case linkType:
		*c = linkConverter
		return nil
	case timeType:
		*c = timeConverter
		return nil
	case anyType:
		*c = anyConverter()
		return nil
	case durationType:
		return problem("a time.Duration has no form of its own in JSON; store a number and say its unit in the name, such as delayMs")
	}
	if hasMethods(t) {
		*c = textConverter
		return nil
	}
	return b.compileKind(c, t)
}

func (b builder) compileKind(c *converter, t reflect.Type) error {
	switch t.Kind() {
	case reflect.Bool:
		*c = boolConverter
	case reflect.String:
		*c = stringConverter
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		*c = intConverter(t)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		*c = uintConverter(t)
	case reflect.Float32:
		*c = float32Converter
	case reflect.Float64:
		*c = float64Converter
	case reflect.Pointer:
		return b.pointer(c, t)
	case reflect.Slice:
		return b.slice(c, t)
	case reflect.Array:
		return b.array(c, t)
	case reflect.Map:
		return b.mapping(c, t)
	case reflect.Struct:
		return b.structure(c, t)
	case reflect.Interface:
		*c = textConverter
	default:
		return problem(fmt.Sprintf("a %s cannot be part of a document: it means nothing outside its process; leave the field out with the tag `json:\"-\"`", t.Kind()))
	}
	return nil
}

// methods are those by which a type defines its own JSON form.
var methods = []reflect.Type{
	reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.MarshalerTo](),
	reflect.TypeFor[json.Unmarshaler](), reflect.TypeFor[json.UnmarshalerFrom](),
	reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextAppender](),
	reflect.TypeFor[encoding.TextUnmarshaler](),
}

// hasMethods reports whether t, or a pointer to it, has any of the methods. For pointers and
// interfaces they are called on the value that they refer to.
func hasMethods(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface {
		return false
	}
	for _, m := range methods {
		if t.Implements(m) || reflect.PointerTo(t).Implements(m) {
			return true
		}
	}
	return false
}
