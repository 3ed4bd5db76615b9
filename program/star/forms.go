package star

import (
	"fmt"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle/program/star/internal/value"
)

// formArgs are the arguments of cell about the version of a document.
type formArgs struct {
	version  int // 0 if it is not named
	upgrades *starlark.List
	rows     bool
}

// formOf returns the form of a document: the one that is named, or else the one that the file has named before. A file names one form of a
// document of the own space. A test may name another one, to store what an earlier version wrote.
func (inst *instance) formOf(doc, in string, a formArgs) (*value.Form, error) {
	named, known := inst.forms[doc]
	known = known && in == ""
	if a.version == 0 {
		if a.upgrades != nil || a.rows {
			return nil, fmt.Errorf("upgrades and rows are about a version; name it: version = 2")
		}
		if in == "" {
			inst.noteForm(doc, named)
		}
		return named, nil
	}
	f, err := inst.newForm(a)
	switch {
	case err != nil:
		return nil, err
	case in == "" && known && !named.Equal(f) && inst.test == nil:
		return nil, fmt.Errorf("it has been named with another version or other upgrades before; name it once, at the top of the file")
	case in == "" && !known:
		inst.noteForm(doc, f)
	}
	return f, nil
}

// noteForm keeps the form of a document of the own space while the program is loaded.
func (inst *instance) noteForm(doc string, f *value.Form) {
	if inst.load == nil {
		return
	}
	if inst.forms == nil {
		inst.forms = map[string]*value.Form{}
	}
	inst.forms[doc] = f
}

func (inst *instance) newForm(a formArgs) (*value.Form, error) {
	var steps []starlark.Value
	if a.upgrades != nil {
		for i := range a.upgrades.Len() {
			steps = append(steps, a.upgrades.Index(i))
		}
	}
	if a.version == 1 && len(steps) == 0 {
		return nil, nil
	}
	for _, s := range steps {
		f, ok := s.(starlark.Callable)
		if !ok {
			return nil, fmt.Errorf("upgrades is a list of functions, not of %s", s.Type())
		}
		if err := checkArity(f, 1, "an upgrade takes one parameter, the value of the version before, and returns the new one"); err != nil {
			return nil, err
		}
		if inst.load != nil {
			inst.steps = append(inst.steps, f)
		}
		f.Freeze()
	}
	return value.NewForm(&inst.Current, a.version, steps, a.rows)
}
