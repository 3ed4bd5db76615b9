package shape

import (
	"reflect"
	"sync"

	"github.com/settlehq/settle/model"
)

// Shape converts between values of type T and documents. It is safe for concurrent use.
type Shape[T any] struct {
	codec *codec

	// decode and encode, if set, replace the codec. decode returns false for values that it leaves
	// to the codec.
	decode func(model.Value) (T, bool)
	encode func(T) (model.Value, error)
}

// shapes are the existing Shapes, by T.
var shapes sync.Map // of reflect.Type to *Shape[T]

// Of returns the shape of T, which is compiled at the first call. If T cannot be a document, the
// error says where in T and why.
func Of[T any]() (*Shape[T], error) {
	t := reflect.TypeFor[T]()
	if s, ok := shapes.Load(t); ok {
		return s.(*Shape[T]), nil
	}
	c, err := codecOf(t)
	if err != nil {
		return nil, of(t, err)
	}
	s := &Shape[T]{codec: c}
	s.shortcut()
	kept, _ := shapes.LoadOrStore(t, s)
	return kept.(*Shape[T]), nil
}

// Decode decodes v into a T. An absent v is the zero T, as with Value.Decode. With an error, the T
// is zero, too.
func (s *Shape[T]) Decode(v model.Value) (T, error) {
	if s.decode != nil {
		if t, ok := s.decode(v); ok {
			return t, nil
		}
	}
	return s.decodeByCodec(v)
}

// decodeByCodec is separate so that only its T is allocated on the heap.
func (s *Shape[T]) decodeByCodec(v model.Value) (T, error) {
	var t, zero T
	if v.IsAbsent() {
		return zero, nil
	}
	if err := s.codec.decode(v, reflect.ValueOf(&t).Elem()); err != nil {
		return zero, err
	}
	return t, nil
}

// Encode encodes t.
func (s *Shape[T]) Encode(t T) (model.Value, error) {
	if s.encode != nil {
		return s.encode(t)
	}
	return s.encodeByCodec(t)
}

func (s *Shape[T]) encodeByCodec(t T) (model.Value, error) {
	return s.codec.encode(reflect.ValueOf(&t).Elem(), 0)
}
