package value

import (
	"fmt"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/upgrade"
)

// Form is the version of what a place is in: of a document, or of each of its rows.
type Form struct {
	Chain *upgrade.Chain
	Rows  bool
	// Steps are the functions of the chain.
	Steps []starlark.Value
}

// NewForm returns the form of a version, with functions that upgrade by one version each, up to it.
func NewForm(cur *Current, version int, steps []starlark.Value, rows bool) (*Form, error) {
	chain := make([]upgrade.Step, len(steps))
	for i, f := range steps {
		chain[i] = upgrade.Untyped(version-len(steps)+i, func(v model.Value) (model.Value, error) { return cur.upgrade(f, v) })
	}
	c, err := upgrade.New(version, chain...)
	return &Form{Chain: c, Rows: rows, Steps: steps}, err
}

// Equal reports whether two places are of the same form.
func (f *Form) Equal(g *Form) bool {
	if f == nil || g == nil {
		return f == g
	}
	same := f.Chain.Version() == g.Chain.Version() && f.Rows == g.Rows && len(f.Steps) == len(g.Steps)
	for i := 0; same && i < len(f.Steps); i++ {
		same = f.Steps[i] == g.Steps[i]
	}
	return same
}

// upgrade calls a function of a program, which must use nothing but the value.
func (c *Current) upgrade(f starlark.Value, v model.Value) (model.Value, error) {
	run := c.Run
	if run == nil {
		return model.Value{}, fmt.Errorf("it is upgraded while the program is loaded")
	}
	before := run.Upgrades
	run.Upgrades = true
	out, err := starlark.Call(&run.Thread, f, starlark.Tuple{FromModel(v)}, nil)
	run.Upgrades = before
	if err != nil {
		return model.Value{}, err
	}
	return run.ToModel(out)
}

// upgraded is a value that a run has upgraded.
type upgraded struct {
	form       *Form // a program may read a document of another space in several
	space, doc string
	path       string
	stored, is model.Value
}

// maxUpgraded bounds the values that a run remembers.
const maxUpgraded = 64

// unit returns the path to what has the version, and the rest of the path of the place.
func (x *Place) unit() (to, rest model.Path) {
	n := 0
	if x.Form != nil && x.Form.Rows {
		n = min(1, len(x.Path))
	}
	return x.Path[:n:n], x.Path[n:]
}

// isAbove reports whether the place is the document of rows that have versions.
func (x *Place) isAbove() bool { return x.Form != nil && x.Form.Rows && len(x.Path) == 0 }

// way is a way to read.
type way uint8

const (
	deep way = iota
	shallow
	peeking
)

// stored reads a path as it is stored.
func (x *Place) stored(tx Documents, how way, path model.Path) model.Value {
	switch {
	case x.Space != "":
		return tx.GetFrom(x.Space, x.Doc, path...)
	case how == shallow:
		return tx.GetShallow(x.Doc, path...)
	case how == peeking:
		return tx.Peek(x.Doc, path...)
	}
	return tx.Get(x.Doc, path...)
}

// value reads the value of the place in its present form. A value of a later version fails the transaction.
func (x *Place) value(tx Documents, how way) model.Value {
	if x.Form == nil {
		v := x.stored(tx, how, x.Path)
		if !x.Stored && x.outdated(tx) {
			return model.Value{}
		}
		return v
	}
	to, rest := x.unit()
	if x.isAbove() {
		return x.rows(tx, how)
	}
	whole := how
	if how == shallow {
		whole = deep
	}
	if model.VersionIn(x.stored(tx, whole, append(to, model.VersionKey))) == x.Form.Chain.Version() {
		v := x.stored(tx, how, x.Path)
		if len(rest) == 0 {
			v, _ = v.Delete(model.Path{model.VersionKey}) // it is an object
		}
		return v
	}
	v, err := x.upgrade(to, x.stored(tx, whole, to))
	if err != nil {
		tx.Fail(err)
	}
	return x.followed(tx, v.At(rest))
}

// followed follows a link that an upgraded value has, as a read of what is stored does.
func (x *Place) followed(tx Documents, v model.Value) model.Value {
	l, is := v.AsLink()
	switch {
	case !is:
		return v
	case l.Space == "" && x.Space == "":
		return tx.Get(l.Doc, l.Path...)
	case l.Space == "":
		l.Space = x.Space
	}
	return tx.GetFrom(l.Space, l.Doc, l.Path...)
}

// rows reads the document of rows that have versions.
func (x *Place) rows(tx Documents, how way) model.Value {
	v := x.stored(tx, how, nil)
	if how == shallow {
		return v
	}
	for key, row := range v.All() {
		up, err := x.upgrade(model.Path{key}, row)
		if err == nil {
			v, err = v.Set(model.Path{key}, up)
		}
		if err != nil {
			tx.Fail(err)
			return model.Value{}
		}
	}
	return v
}

// upgrade returns a value that is stored at a path in its present form. A run upgrades each value once to a form.
func (x *Place) upgrade(at model.Path, v model.Value) (model.Value, error) {
	run := x.Cur.Run
	key := at.String()
	for i := range run.upgraded {
		if u := &run.upgraded[i]; u.space == x.Space && u.doc == x.Doc && u.path == key && u.form.Equal(x.Form) && model.Equal(u.stored, v) {
			return u.is, nil
		}
	}
	up, err := x.Form.Chain.Upgrade(&Place{Space: x.Space, Doc: x.Doc, Path: at}, v)
	if err == nil && len(run.upgraded) < maxUpgraded {
		run.upgraded = append(run.upgraded, upgraded{x.Form, x.Space, x.Doc, key, v, up})
	}
	return up, err
}

// outdated fails the transaction if what is stored has a later version than the place.
func (x *Place) outdated(tx Documents) bool {
	var chain *upgrade.Chain
	if x.Form != nil {
		chain = x.Form.Chain
	}
	to, _ := x.unit()
	n := tx.StoredVersion(x.Space, x.Doc, to...)
	if n > chain.Version() {
		tx.Fail(&model.NewerError{Place: (&Place{Space: x.Space, Doc: x.Doc, Path: to}).String(), Version: n, Known: chain.Version()})
	}
	return n > chain.Version()
}

// store writes a value at a path of the document, in the present form.
func (x *Place) store(tx Documents, path model.Path, v model.Value) error {
	at := &Place{Cur: x.Cur, Space: x.Space, Doc: x.Doc, Path: path, Form: x.Form}
	if at.outdated(tx) {
		return tx.Err()
	}
	v, err := at.stamped(v)
	if err == nil {
		err = at.prepare(tx, false)
	}
	if err != nil {
		return err
	}
	tx.Set(x.Doc, v, path...)
	return tx.Err()
}

// stamped returns what is stored for a value of the place.
func (x *Place) stamped(v model.Value) (model.Value, error) {
	var chain *upgrade.Chain
	if x.Form != nil {
		chain = x.Form.Chain
	}
	_, rest := x.unit()
	switch {
	case len(rest) > 0:
		return v, nil
	case !x.isAbove():
		return chain.Stamp(v)
	}
	for key, row := range v.All() {
		row, err := chain.Stamp(row)
		if err == nil {
			v, err = v.Set(model.Path{key}, row)
		}
		if err != nil {
			return v, fmt.Errorf("row %s: %w", key, err)
		}
	}
	return v, nil
}

// prepare stores the document of a part that is about to be written in the present form.
func (x *Place) prepare(tx Documents, deletes bool) error {
	to, rest := x.unit()
	if x.Form == nil || len(rest) == 0 || tx.StoredVersion("", x.Doc, to...) == x.Form.Chain.Version() {
		return nil
	}
	doc, at, own := upgrade.Target(tx, x.Doc, to)
	if !own {
		return nil // the write itself is refused
	}
	v := tx.Peek(doc, at...)
	if v.IsAbsent() {
		if !deletes {
			tx.Set(doc, model.Object(model.F(model.VersionKey, x.Form.Chain.Version())), at...)
		}
		return tx.Err()
	}
	v, err := x.upgrade(to, v)
	if err == nil {
		v, err = x.Form.Chain.Stamp(v)
	}
	if err != nil {
		return err
	}
	tx.Set(doc, v, at...)
	return tx.Err()
}
