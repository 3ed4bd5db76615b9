package value

import (
	"fmt"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/settlehq/settle/model"
)

// Link is a link to a place, as a value of the language: see model.Link.
type Link struct{ Target model.Link }

func (x Link) Type() string          { return "link" }
func (x Link) Freeze()               {}
func (x Link) Truth() starlark.Bool  { return true }
func (x Link) Hash() (uint32, error) { return starlark.String(x.String()).Hash() }
func (x Link) String() string {
	where := x.Target.Doc + x.Target.Path.String()
	if x.Target.Space != "" {
		where = "@" + x.Target.Space + "/" + where
	}
	return "link(" + where + ")"
}

// Attr returns a part of the link: its space, document or path.
func (x Link) Attr(name string) (starlark.Value, error) {
	switch name {
	case "space":
		return starlark.String(x.Target.Space), nil
	case "doc":
		return starlark.String(x.Target.Doc), nil
	case "path":
		t := make(starlark.Tuple, len(x.Target.Path))
		for i, s := range x.Target.Path {
			t[i] = starlark.String(s)
		}
		return t, nil
	}
	return nil, nil
}
func (x Link) AttrNames() []string { return []string{"doc", "path", "space"} }

// CompareSameType compares the targets of two links.
func (x Link) CompareSameType(op syntax.Token, y starlark.Value, depth int) (bool, error) {
	same := x.String() == y.(Link).String()
	switch op {
	case syntax.EQL:
		return same, nil
	case syntax.NEQ:
		return !same, nil
	}
	return false, fmt.Errorf("link %s link is not defined", op)
}
