package shape

import (
	"reflect"
	"sync"

	"github.com/settlehq/settle/model"
)

// Shape is how values of type T are documents. It is for any number of goroutines.
type Shape[T any] struct {
	codec *codec

	// decode and encode, if set, stand in for the codec. decode reports false for what it
	// leaves to the codec.
	decode func(model.Value) (T, bool)
	encode func(T) (model.Value, error)
}

// shapes are the Shapes that exist, by their T.
var shapes sync.Map // of reflect.Type to *Shape[T]

// Of is the shape of T. It is compiled at the first call. A T that cannot be a document is
// an error that says where in T and why.
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

// Decode is v as a T. What is absent is the zero T, as Value.Decode leaves it. On an error
// the T is the zero one too.
func (s *Shape[T]) Decode(v model.Value) (T, error) {
	if s.decode != nil {
		if t, ok := s.decode(v); ok {
			return t, nil
		}
	}
	return s.decodeByCodec(v)
}

// decodeByCodec is apart so that only its T needs to be on the heap.
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

// Encode is t as a value.
func (s *Shape[T]) Encode(t T) (model.Value, error) {
	if s.encode != nil {
		return s.encode(t)
	}
	return s.encodeByCodec(t)
}

func (s *Shape[T]) encodeByCodec(t T) (model.Value, error) {
	return s.codec.encode(reflect.ValueOf(&t).Elem(), 0)
}
