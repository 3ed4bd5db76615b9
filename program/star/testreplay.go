package star

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"
)

// testReplay is replay(lines): what happened in a space happens again, at the same times, in a world
// that takes the place of the test's. The test fails if anything comes to something else. The
// program's functions are run once, and their errors are no failure: production had them, too.
func (m *machine) testReplay(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var list *starlark.List
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "lines", &list); err != nil {
		return nil, err
	}
	if m.test.world == nil {
		return nil, fmt.Errorf("%s: call it in a function whose name begins with test_", b.Name())
	}
	var lines []string
	for i := range list.Len() {
		text, ok := starlark.AsString(list.Index(i))
		if !ok {
			return nil, fmt.Errorf("%s: line %d is a %s; `settle replay` writes strings", b.Name(), i+1, list.Index(i).Type())
		}
		lines = append(lines, text)
	}
	x := m.test
	w, r, err := x.engine.Replay(x.program.Space(), lines, x.logs)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.Name(), err)
	}
	x.start, x.world = r.Start, w
	x.world.TakeProblems() // production had them, too
	if len(r.Differences) > 0 {
		return nil, fmt.Errorf("%s of space %s: %s", b.Name(), r.Space, strings.Join(r.Differences, "\n  "))
	}
	return starlark.None, nil
}
