package shape

import (
	"encoding"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/settlehq/settle/model"
)

// codec converts between values of one Go type and documents.
type codec struct {
	// decode stores v, which is not absent, in to, which is settable and the zero value.
	decode func(v model.Value, to reflect.Value) error
	// encode returns from as a value nested in depth containers. An absent result becomes null
	// inside a container.
	encode func(from reflect.Value, depth int) (model.Value, error)
}

// codecs are the complete codecs, by type.
var codecs sync.Map // of reflect.Type to *codec

// codecOf returns the codec of t, or an error if t cannot be encoded.
func codecOf(t reflect.Type) (*codec, error) {
	if c, ok := codecs.Load(t); ok {
		return c.(*codec), nil
	}
	b := builder{}
	c, err := b.codec(t)
	if err != nil {
		return nil, err
	}
	for t, c := range b { // any order: each is stored under its own type
		codecs.LoadOrStore(t, c)
	}
	return c, nil
}

// builder compiles one type and all types that it contains. It holds incomplete codecs, so that a
// type may contain itself.
type builder map[reflect.Type]*codec

func (b builder) codec(t reflect.Type) (*codec, error) {
	if c, ok := codecs.Load(t); ok {
		return c.(*codec), nil
	}
	if c, ok := b[t]; ok {
		return c, nil
	}
	c := new(codec)
	b[t] = c
	return c, b.compile(c, t)
}

// Types that have a codec of their own although they have methods or another kind.
var (
	valueType    = reflect.TypeFor[model.Value]()
	linkType     = reflect.TypeFor[model.Link]()
	timeType     = reflect.TypeFor[time.Time]()
	durationType = reflect.TypeFor[time.Duration]()
	anyType      = reflect.TypeFor[any]()
)

// compile sets the functions of c, the codec of t.
func (b builder) compile(c *codec, t reflect.Type) error {
	switch t {
	case valueType:
		*c = valueCodec
		return nil
	case linkType:
		*c = linkCodec
		return nil
	case timeType:
		*c = timeCodec
		return nil
	case anyType:
		*c = anyCodec()
		return nil
	case durationType:
		return problem("a time.Duration has no form of its own in JSON; store a number and say its unit in the name, such as delayMs")
	}
	if hasMethods(t) {
		*c = textCodec
		return nil
	}
	return b.compileKind(c, t)
}

func (b builder) compileKind(c *codec, t reflect.Type) error {
	switch t.Kind() {
	case reflect.Bool:
		*c = boolCodec
	case reflect.String:
		*c = stringCodec
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		*c = intCodec(t)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		*c = uintCodec(t)
	case reflect.Float32:
		*c = float32Codec
	case reflect.Float64:
		*c = float64Codec
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
		*c = textCodec
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
