package interp

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program/star/internal/meter"
	"github.com/settlehq/settle/program/star/internal/value"
)

// writer writes values as text, and charges for it: a list that holds the same list many times over is
// small in memory, and its text is not.
type writer struct {
	run *value.Run
	b   strings.Builder
	err error
	max int // bytes, 0 for no bound but the memory of the run
}

// Text is str(x).
func Text(run *value.Run, x starlark.Value) (string, error) {
	if s, ok := x.(starlark.String); ok {
		return string(s), nil
	}
	return repr(run, x)
}

// repr is repr(x).
func repr(run *value.Run, x starlark.Value) (string, error) {
	w := writer{run: run}
	w.value(x, 0)
	return w.b.String(), w.err
}

// ShortText returns the beginning of repr(x), for an error message.
func ShortText(run *value.Run, x starlark.Value) string {
	w := writer{run: run, max: 200}
	w.value(x, 0)
	return w.b.String()
}

func (w *writer) put(s string) {
	if w.err != nil {
		return
	}
	if w.max > 0 && w.b.Len()+len(s) > w.max {
		w.b.WriteString("...")
		w.err = fmt.Errorf("the text is longer than %d bytes", w.max)
		return
	}
	if w.err = w.run.Charge(1+len(s)/meter.TextStep, 2*len(s)); w.err == nil {
		w.b.WriteString(s)
	}
}

func (w *writer) value(x starlark.Value, depth int) {
	if w.err != nil {
		return
	}
	if w.err = w.run.CheckDepth(depth); w.err != nil {
		return
	}
	switch x := x.(type) {
	case starlark.String:
		if w.max > 0 && len(x) > w.max {
			x = x[:w.max]
		}
		w.put(x.String())
	case *starlark.List:
		w.elements("[", "]", x.Len(), x.Index, depth)
	case starlark.Tuple:
		end := ")"
		if len(x) == 1 {
			end = ",)"
		}
		w.elements("(", end, len(x), x.Index, depth)
	case *starlark.Dict:
		w.entries(x, depth)
	case *starlark.Set:
		w.put("set([")
		first := true
		for e := range x.Elements() {
			w.comma(&first)
			w.value(e, depth+1)
		}
		w.put("])")
	case *value.Place:
		v, err := x.Read()
		if err != nil {
			w.err = err
			return
		}
		w.value(value.FromModel(v), depth)
	case *value.View:
		w.view(x.V, depth)
	case *starlark.Function:
		w.put("<function " + x.Name() + ">")
	default:
		w.put(x.String())
	}
}

func (w *writer) comma(first *bool) {
	if !*first {
		w.put(", ")
	}
	*first = false
}

func (w *writer) elements(open, end string, n int, at func(int) starlark.Value, depth int) {
	w.put(open)
	first := true
	for i := 0; i < n && w.err == nil; i++ {
		w.comma(&first)
		w.value(at(i), depth+1)
	}
	w.put(end)
}

func (w *writer) entries(d *starlark.Dict, depth int) {
	w.put("{")
	first := true
	for k, v := range d.Entries() {
		if w.err != nil {
			return
		}
		w.comma(&first)
		w.value(k, depth+1)
		w.put(": ")
		w.value(v, depth+1)
	}
	w.put("}")
}

func (w *writer) view(v model.Value, depth int) {
	if v.Kind() == model.KindArray {
		w.elements("[", "]", v.Len(), func(i int) starlark.Value { return value.FromModel(v.Index(i)) }, depth)
		return
	}
	w.put("{")
	first := true
	for k, f := range v.All() {
		if w.err != nil {
			return
		}
		w.comma(&first)
		w.put(starlark.String(k).String() + ": ")
		w.value(value.FromModel(f), depth+1)
	}
	w.put("}")
}

// rawText is a string that the library writes into another one unquoted.
type rawText string

func (t rawText) String() string        { return string(t) }
func (t rawText) Type() string          { return "string" }
func (t rawText) Freeze()               {}
func (t rawText) Truth() starlark.Bool  { return len(t) > 0 }
func (t rawText) Hash() (uint32, error) { return 0, nil }

// formatArgument converts an argument of a format to a value whose text is no longer than the returned
// number of bytes.
func formatArgument(run *value.Run, x starlark.Value) (starlark.Value, int, error) {
	x, err := scalarAt(x)
	if err != nil {
		return nil, 0, err
	}
	switch x := x.(type) {
	case starlark.String:
		return x, 4 * len(x), nil // quoted, at worst
	case starlark.Int, starlark.Float, starlark.Bool, starlark.NoneType:
		return x, 400, nil // %f of a large float
	}
	s, err := repr(run, x)
	return rawText(s), len(s), err
}

// formatPercent is format % x.
func formatPercent(run *value.Run, format string, x starlark.Value) (starlark.Value, error) {
	verbs := strings.Count(format, "%")
	longest, total := 0, 0
	plain := func(x starlark.Value) (starlark.Value, error) {
		y, n, err := formatArgument(run, x)
		longest, total = max(longest, n), total+n
		return y, err
	}
	var arg starlark.Value
	var err error
	v, isPlace := x.(*value.Place)
	if isPlace {
		if x, err = valueAt(run, v); err != nil {
			return nil, err
		}
	}
	switch x := x.(type) {
	case starlark.Tuple:
		t := make(starlark.Tuple, len(x))
		for i, e := range x {
			if t[i], err = plain(e); err != nil {
				return nil, err
			}
		}
		arg = t
	case *starlark.Dict:
		d := starlark.NewDict(x.Len())
		for k, e := range x.Entries() {
			y, err := plain(e)
			if err == nil {
				err = d.SetKey(k, y)
			}
			if err != nil {
				return nil, err
			}
		}
		arg, total = d, longest*verbs
	case *value.View:
		d, err := dictOf(run, x)
		if err != nil {
			return nil, err
		}
		return formatPercent(run, format, d)
	default:
		if arg, err = plain(x); err != nil {
			return nil, err
		}
	}
	if err := run.Charge(1+(len(format)+total)/meter.TextStep, len(format)+total); err != nil {
		return nil, err
	}
	return percent(format, arg)
}

// percent calls the library for arguments that have been charged.
func percent(format string, arg starlark.Value) (starlark.Value, error) {
	x, err := starlark.Binary(syntax.PERCENT, starlark.String(format), arg)
	if err != nil && strings.HasPrefix(err.Error(), "unknown conversion") {
		err = fmt.Errorf("%w; there are no widths: \"0\" * (3 - len(s)) + s is s in three digits", err)
	}
	return x, err
}
