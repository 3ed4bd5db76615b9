package star

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program/star/internal/interp"
)

// documents is documents(prefix, after = "", limit = 0, descending = False): the names of the documents of this space that begin with
// the prefix and that no node writes.
func (inst *instance) documents(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	prefix, page, err := pageArgs(b, "prefix", args, kwargs)
	if err != nil {
		return nil, err
	}
	if prefix == "" || strings.HasPrefix(prefix, "-") || model.IsPattern(prefix) {
		return nil, fmt.Errorf("%s: the prefix is %q; it is the beginning of names, such as \"order-\"", b.Name(), prefix)
	}
	tx, err := inst.transaction(b)
	if err != nil {
		return nil, err
	}
	return inst.names(tx.GetShallow(model.PatternOf(prefix)), page, tx.Err)
}

// spaces is spaces(pattern, after = "", limit = 0, descending = False): the names of the spaces that match.
func (inst *instance) spaces(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	pattern, page, err := pageArgs(b, "pattern", args, kwargs)
	if err == nil {
		err = model.CheckPattern("spaces", pattern)
	}
	if err != nil {
		return nil, err
	}
	tx, err := inst.transaction(b)
	if err != nil {
		return nil, err
	}
	return inst.names(tx.GetFrom(pattern, model.SpacesDoc), page, tx.Err)
}

func pageArgs(b *starlark.Builtin, what string, args starlark.Tuple, kwargs []starlark.Tuple) (of string, page model.Page, err error) {
	err = starlark.UnpackArgs(b.Name(), args, kwargs, what, &of, "after?", &page.After, "limit?", &page.Limit, "descending?", &page.Descending)
	if err == nil {
		err = page.Check()
	}
	return of, page, err
}

// names returns a page of the keys of a list. wrong returns the error of its transaction.
func (inst *instance) names(list model.Value, page model.Page, wrong func() error) (starlark.Value, error) {
	if err := wrong(); err != nil {
		return nil, err
	}
	if err := inst.Run.Charge(1+list.Len(), 0); err != nil { // for those that are not on the page
		return nil, err
	}
	return interp.StringList(&inst.current().Run, page.Of(list.Keys()))
}
