package codec

import (
	"reflect"
	"sync"

	"github.com/settlehq/settle/model"
)

// Codec converts between values of type T and documents. It is safe for concurrent use.
type Codec[T any] struct {
	converter *converter

	// decode and encode, if set, replace the converter. decode returns false for values that it leaves
	// to the converter.
	decode func(model.Value) (T, bool)
	encode func(T) (model.Value, error)
}

// codecs are the existing Codecs, by T.
var codecs sync.Map // of reflect.Type to *Codec[T]

// Of returns the codec of T, which is compiled at the first call. If T cannot be a document, the
// error says where in T and why.
func Of[T any]() (*Codec[T], error) {
	t := reflect.TypeFor[T]()
	if s, ok := codecs.Load(t); ok {
		return s.(*Codec[T]), nil
	}
	c, err := converterOf(t)
	if err != nil {
		return nil, of(t, err)
	}
	s := &Codec[T]{converter: c}
	s.shortcut()
	kept, _ := codecs.LoadOrStore(t, s)
	return kept.(*Codec[T]), nil
}

// Decode decodes v into a T. An absent v is the zero T, as with Value.Decode. With an error, the T
// is zero, too.
func (s *Codec[T]) Decode(v model.Value) (T, error) {
	if s.decode != nil {
		if t, ok := s.decode(v); ok {
			return t, nil
		}
	}
	return s.decodeByConverter(v)
}

// decodeByConverter is separate so that only its T is allocated on the heap.
func (s *Codec[T]) decodeByConverter(v model.Value) (T, error) {
	var t, zero T
	if v.IsAbsent() {
		return zero, nil
	}
	if err := s.converter.decode(v, reflect.ValueOf(&t).Elem()); err != nil {
		return zero, err
	}
	return t, nil
}

// Encode encodes t.
func (s *Codec[T]) Encode(t T) (model.Value, error) {
	if s.encode != nil {
		return s.encode(t)
	}
	return s.encodeByConverter(t)
}

func (s *Codec[T]) encodeByConverter(t T) (model.Value, error) {
	return s.converter.encode(reflect.ValueOf(&t).Elem(), 0)
}
