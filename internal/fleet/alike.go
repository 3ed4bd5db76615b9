package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Programs are what workers that are not gone call what they host, each with their names. Those
// that do not tell are not among them.
func (f *Fleet) Programs() []string {
	return f.alike(func(m *Member) string { return m.Program })
}

// Binaries are the program files that workers which answer run, each with their names.
func (f *Fleet) Binaries() []string {
	return f.alike(func(m *Member) string {
		if m.Figures == nil {
			return ""
		}
		return m.Figures.Binary
	})
}

// alike are the workers that are not gone by what they have in common.
func (f *Fleet) alike(what func(*Member) string) (out []string) {
	by := map[string][]string{}
	for i := range f.Workers {
		m := &f.Workers[i]
		if has := what(m); has != "" && m.State != Gone {
			by[has] = append(by[has], m.ID)
		}
	}
	for _, has := range slices.Sorted(maps.Keys(by)) {
		out = append(out, has+" ("+clipped(by[has])+")")
	}
	return out
}

// clipped names a few.
func clipped(names []string) string {
	const most = 3
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}
