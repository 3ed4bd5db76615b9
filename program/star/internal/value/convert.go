package value

import (
	"fmt"
	"math"
	"unicode/utf8"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program/star/internal/meter"
)

// ToModel converts a value of the language to one of a document. It refuses values that are larger or
// nested deeper than the limits of the run, and types that a document cannot hold.
func (run *Run) ToModel(x starlark.Value) (model.Value, error) {
	switch x := x.(type) { // the common cases, which need no accounting
	case starlark.Int:
		if i, ok := x.Int64(); ok {
			return model.Int(i), nil
		}
	case starlark.Bool:
		return model.Bool(bool(x)), nil
	}
	return run.convert(x)
}

func (run *Run) convert(x starlark.Value) (model.Value, error) {
	c := conversion{run: run, room: run.Bounds.Output}
	v, err := c.value(x, 0)
	if err != nil {
		return model.Value{}, err
	}
	return v, run.Charge(c.nodes, c.nodes*24+run.Bounds.Output-c.room)
}

// reader is a place whose value leaves the run.
type reader interface{ Read() (model.Value, error) }

// conversion converts one value.
type conversion struct {
	run   *Run
	room  int // bytes left of Limits.Output
	nodes int
}

func (c *conversion) take(n int) error {
	c.nodes++
	if c.room -= n; c.room < 0 {
		return fmt.Errorf("the value is larger than %s, the limit for a value that leaves a run", meter.BytesText(int64(c.run.Bounds.Output)))
	}
	return nil
}

func (c *conversion) value(x starlark.Value, depth int) (model.Value, error) {
	if depth > c.run.Bounds.Depth {
		return model.Value{}, fmt.Errorf("the value is nested more than %d deep", c.run.Bounds.Depth)
	}
	switch x := x.(type) {
	case starlark.NoneType:
		return model.Null(), c.take(4)
	case starlark.Bool:
		return model.Bool(bool(x)), c.take(4)
	case starlark.Int:
		i, ok := x.Int64()
		if !ok {
			return model.Value{}, fmt.Errorf("the integer does not fit into 64 bits")
		}
		return model.Int(i), c.take(8)
	case starlark.Float:
		f := float64(x)
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return model.Value{}, fmt.Errorf("%v cannot be stored in a document, which holds finite numbers", x)
		}
		return model.Float(f), c.take(8)
	case starlark.String:
		if !utf8.ValidString(string(x)) {
			return model.Value{}, fmt.Errorf("the string is not valid UTF-8")
		}
		return model.String(string(x)), c.take(len(x) + 2)
	case *View:
		return x.V, c.whole(x.V, depth)
	case reader:
		v, err := x.Read()
		if err != nil {
			return model.Value{}, err
		}
		if v.IsAbsent() {
			v = model.Null()
		}
		return v, c.whole(v, depth)
	case Link:
		v, err := model.Of(x.Target)
		if err != nil {
			return model.Value{}, err
		}
		return v, c.take(len(x.Target.Doc) + len(x.Target.Space) + len(x.Target.Path.String()) + 30)
	case *starlark.Dict:
		return c.object(x, depth)
	case *starlark.List:
		return c.array(x.Len(), x.Index, depth)
	case starlark.Tuple:
		return c.array(len(x), x.Index, depth)
	case *starlark.Set:
		return model.Value{}, fmt.Errorf("a set cannot be stored in a document; use sorted(s)")
	}
	return model.Value{}, fmt.Errorf("%s cannot be stored in a document", meter.Article(x.Type()))
}

// whole accounts for a value of a document, which needs no conversion.
func (c *conversion) whole(v model.Value, depth int) error {
	size, nodes, deep := Measure(v)
	c.nodes += nodes
	if depth+deep > c.run.Bounds.Depth {
		return fmt.Errorf("the value is nested more than %d deep", c.run.Bounds.Depth)
	}
	return c.take(size)
}

func (c *conversion) array(n int, at func(int) starlark.Value, depth int) (model.Value, error) {
	if err := c.take(n + 2); err != nil {
		return model.Value{}, err
	}
	return model.ArrayFunc(n, func(i int) (model.Value, error) { return c.value(at(i), depth+1) })
}

func (c *conversion) object(d *starlark.Dict, depth int) (model.Value, error) {
	if err := c.take(d.Len() + 2); err != nil {
		return model.Value{}, err
	}
	fields := make([]model.Field, 0, d.Len())
	for k, x := range d.Entries() {
		s, ok := k.(starlark.String)
		if !ok {
			return model.Value{}, fmt.Errorf("the key of an object in a document must be a string, not %s", meter.Article(k.Type()))
		}
		if !utf8.ValidString(string(s)) {
			return model.Value{}, fmt.Errorf("a key is not valid UTF-8")
		}
		if err := c.take(len(s) + 4); err != nil {
			return model.Value{}, err
		}
		v, err := c.value(x, depth+1)
		if err != nil {
			return model.Value{}, err
		}
		fields = append(fields, model.Field{Key: string(s), Value: v})
	}
	return model.Object(fields...), nil
}
