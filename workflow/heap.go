package workflow

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.starlark.net/starlark"
)

// The variables of a run are stored with their types and with their sharing: a list that two variables refer
// to is one list again after loading. Numbers are ints; every other value that JSON lacks is an object
// with one member:
//
//	{"f": "1.5"}       float          {"t": [...]}    tuple
//	{"b": "base64"}    bytes          {"s": "base64"} a text that is not UTF-8
//	{"r": 3}           the list, dict or set at index 3 of the heap
//	{"n": [0, 10, 1]}  range          {"g": "name"}   a function or constant of the program
//	{"e": {...}}       error          {"a": {...}}    attempt

// object is a list, a dict or a set on the heap. Frozen ones came from constants.
type object struct {
	List   *[]jsontext.Value `json:"l,omitzero"`
	Dict   *[]jsontext.Value `json:"d,omitzero"` // keys and values, alternating
	Set    *[]jsontext.Value `json:"t,omitzero"`
	Frozen bool              `json:"z,omitzero"`
}

type tagged struct {
	Float   *string           `json:"f,omitzero"`
	Bytes   *string           `json:"b,omitzero"`
	Text    *string           `json:"s,omitzero"`
	Tuple   *[]jsontext.Value `json:"t,omitzero"`
	Ref     *int              `json:"r,omitzero"`
	Range   *[3]int           `json:"n,omitzero"`
	Global  *string           `json:"g,omitzero"`
	Failure *storedFailure    `json:"e,omitzero"`
	Result  *storedResult     `json:"a,omitzero"`
}

type storedFailure struct {
	Type      string         `json:"type"`
	Ancestors []string       `json:"ancestors,omitzero"`
	Message   string         `json:"message,omitzero"`
	Detail    jsontext.Value `json:"detail,omitzero"`
	Undone    *Undone        `json:"undone,omitzero"`
}

type storedResult struct {
	Value jsontext.Value `json:"value,omitzero"`
	Error *storedFailure `json:"error,omitzero"`
}

// saver stores values.
type saver struct {
	p       *Program
	ids     map[starlark.Value]int
	order   []starlark.Value
	objects []object
}

func (s *saver) value(v starlark.Value, depth int) (jsontext.Value, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("a value that is nested more than %d deep", maxNesting)
	}
	var t tagged
	switch v := v.(type) {
	case starlark.NoneType:
		return jsontext.Value("null"), nil
	case starlark.Bool:
		return strconv.AppendBool(nil, bool(v)), nil
	case starlark.Int:
		return jsontext.Value(v.String()), nil
	case starlark.String:
		if utf8.ValidString(string(v)) {
			return jsontext.AppendQuote(nil, string(v))
		}
		t.Text = encoded(string(v))
	case starlark.Bytes:
		t.Bytes = encoded(string(v))
	case starlark.Float:
		text := strconv.FormatFloat(float64(v), 'g', -1, 64)
		t.Float = &text
	case starlark.Tuple:
		list, err := s.values(v, depth)
		if err != nil {
			return nil, err
		}
		t.Tuple = &list
	case *starlark.List, *starlark.Dict, *starlark.Set:
		id, met := s.ids[v]
		if !met {
			id = len(s.order)
			s.ids[v] = id
			s.order = append(s.order, v)
		}
		t.Ref = &id
	case *Failure:
		f, err := s.failure(v, depth)
		if err != nil {
			return nil, err
		}
		t.Failure = f
	case *Result:
		r, err := s.result(v, depth)
		if err != nil {
			return nil, err
		}
		t.Result = r
	case starlark.Callable:
		name := v.Name()
		if s.p.function(name) != starlark.Value(v) {
			return nil, fmt.Errorf("function %s cannot be kept while the workflow waits: only those at the top of its file can", name)
		}
		t.Global = &name
	default:
		r, is := rangeOf(v)
		if !is {
			return nil, fmt.Errorf("a %s cannot be kept while the workflow waits", v.Type())
		}
		t.Range = &r
	}
	return json.Marshal(&t)
}

func (s *saver) values(list []starlark.Value, depth int) ([]jsontext.Value, error) {
	out := make([]jsontext.Value, len(list))
	for i, e := range list {
		var err error
		if out[i], err = s.value(e, depth+1); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func encoded(s string) *string {
	text := base64.StdEncoding.EncodeToString([]byte(s))
	return &text
}

// rangeOf returns the start, end and step of a range. Its type is not exported, and only its text has them: the end
// cannot be computed from the elements.
func rangeOf(v starlark.Value) (r [3]int, is bool) {
	if v.Type() != "range" {
		return r, false
	}
	r = [3]int{0, 0, 1}
	var parts []int
	for _, field := range strings.FieldsFunc(v.String(), func(c rune) bool { return strings.ContainsRune("range(,) ", c) }) {
		n, err := strconv.Atoi(field)
		if err != nil {
			return r, false
		}
		parts = append(parts, n)
	}
	switch len(parts) {
	case 1:
		r[1] = parts[0]
	case 2, 3:
		copy(r[:], parts)
	default:
		return r, false
	}
	return r, true
}

func (s *saver) failure(f *Failure, depth int) (*storedFailure, error) {
	out := &storedFailure{Type: f.Name, Ancestors: f.Ancestors, Message: f.Message, Undone: f.Undone}
	if f.Detail == nil {
		return out, nil
	}
	var err error
	out.Detail, err = s.value(f.Detail, depth+1)
	return out, err
}

func (s *saver) result(r *Result, depth int) (out *storedResult, err error) {
	out = &storedResult{}
	if r.Error != nil {
		out.Error, err = s.failure(r.Error, depth)
	} else {
		out.Value, err = s.value(r.Value, depth+1)
	}
	return out, err
}

// heap stores all lists, dicts and sets that were visited, and what they contain.
func (s *saver) heap() ([]object, error) {
	for i := 0; i < len(s.order); i++ { // it grows
		var o object
		var list []jsontext.Value
		var err error
		switch v := s.order[i].(type) {
		case *starlark.List:
			list, err = s.values(slices.Collect(v.Elements()), 0)
			o.List, o.Frozen = &list, isFrozen(v.SetIndex, v.Clear, v)
		case *starlark.Dict:
			var items []starlark.Value
			for _, item := range v.Items() {
				items = append(items, item[0], item[1])
			}
			list, err = s.values(items, 0)
			o.Dict = &list
			o.Frozen = isFrozen(func(int, starlark.Value) error { return v.SetKey(items[0], items[1]) }, v.Clear, v)
		case *starlark.Set:
			items := slices.Collect(v.Elements())
			list, err = s.values(items, 0)
			o.Set = &list
			o.Frozen = isFrozen(func(int, starlark.Value) error { return v.Insert(items[0]) }, v.Clear, v)
		}
		if err != nil {
			return nil, err
		}
		s.objects = append(s.objects, o)
	}
	return s.objects, nil
}

// isFrozen reports whether a value is immutable. The interpreter reveals that only in the error of an attempted
// change, and the attempted change has no effect.
func isFrozen(again func(int, starlark.Value) error, empty func() error, v starlark.Sequence) bool {
	var err error
	if v.Len() == 0 {
		err = empty()
	} else if l, is := v.(*starlark.List); is {
		err = again(0, l.Index(0))
	} else {
		err = again(0, nil)
	}
	return err != nil && strings.Contains(err.Error(), "frozen")
}

// loader is the inverse of saver.
type loader struct {
	p    *Program
	heap []starlark.Value
}

func (l *loader) load(objects []object) error {
	for i := range objects {
		switch o := &objects[i]; {
		case o.List != nil:
			l.heap = append(l.heap, starlark.NewList(make([]starlark.Value, 0, len(*o.List))))
		case o.Dict != nil:
			l.heap = append(l.heap, starlark.NewDict(len(*o.Dict)/2))
		case o.Set != nil:
			l.heap = append(l.heap, starlark.NewSet(len(*o.Set)))
		default:
			return errors.New("an object of the heap is neither a list nor a dict nor a set")
		}
	}
	for i := range objects {
		if err := l.fill(l.heap[i], &objects[i]); err != nil {
			return err
		}
	}
	for i := range objects {
		if objects[i].Frozen {
			l.heap[i].Freeze()
		}
	}
	return nil
}

func (l *loader) fill(v starlark.Value, o *object) error {
	switch v := v.(type) {
	case *starlark.List:
		for _, data := range *o.List {
			e, err := l.value(data)
			if err == nil {
				err = v.Append(e)
			}
			if err != nil {
				return err
			}
		}
	case *starlark.Dict:
		for i := 0; i+1 < len(*o.Dict); i += 2 {
			k, err := l.value((*o.Dict)[i])
			if err != nil {
				return err
			}
			e, err := l.value((*o.Dict)[i+1])
			if err == nil {
				err = v.SetKey(k, e)
			}
			if err != nil {
				return err
			}
		}
	case *starlark.Set:
		for _, data := range *o.Set {
			e, err := l.value(data)
			if err == nil {
				err = v.Insert(e)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *loader) value(data jsontext.Value) (starlark.Value, error) {
	switch data.Kind() {
	case '{':
	case '0': // an int, however large: the bound of FromJSON is for numbers from outside
		i, ok := new(big.Int).SetString(string(data), 10)
		if !ok {
			return nil, fmt.Errorf("%.30s is no int", data)
		}
		return starlark.MakeBigInt(i), nil
	default:
		return FromJSON(data)
	}
	var t tagged
	if err := json.Unmarshal(data, &t); err != nil {
		return nil, err
	}
	switch {
	case t.Float != nil:
		f, err := strconv.ParseFloat(*t.Float, 64)
		return starlark.Float(f), err
	case t.Bytes != nil:
		b, err := base64.StdEncoding.DecodeString(*t.Bytes)
		return starlark.Bytes(b), err
	case t.Text != nil:
		b, err := base64.StdEncoding.DecodeString(*t.Text)
		return starlark.String(b), err
	case t.Tuple != nil:
		out := make(starlark.Tuple, len(*t.Tuple))
		for i, e := range *t.Tuple {
			var err error
			if out[i], err = l.value(e); err != nil {
				return nil, err
			}
		}
		return out, nil
	case t.Ref != nil:
		if *t.Ref < 0 || *t.Ref >= len(l.heap) {
			return nil, fmt.Errorf("the heap has %d objects, and no %d", len(l.heap), *t.Ref)
		}
		return l.heap[*t.Ref], nil
	case t.Range != nil:
		args := starlark.Tuple{starlark.MakeInt(t.Range[0]), starlark.MakeInt(t.Range[1]), starlark.MakeInt(t.Range[2])}
		return starlark.Call(&starlark.Thread{}, starlark.Universe["range"], args, nil)
	case t.Global != nil:
		if v := l.p.function(*t.Global); v != nil {
			return v, nil
		}
		return nil, fmt.Errorf("the program has no %s", *t.Global)
	case t.Failure != nil:
		return l.failure(t.Failure)
	case t.Result != nil:
		if t.Result.Error != nil {
			f, err := l.failure(t.Result.Error)
			return &Result{Error: f}, err
		}
		v, err := l.value(t.Result.Value)
		return &Result{Value: v}, err
	}
	return nil, errors.New("a value of no known kind")
}

func (l *loader) failure(s *storedFailure) (*Failure, error) {
	f := &Failure{Name: s.Type, Ancestors: s.Ancestors, Message: s.Message, Undone: s.Undone}
	if s.Detail == nil {
		return f, nil
	}
	var err error
	f.Detail, err = l.value(s.Detail)
	return f, err
}
