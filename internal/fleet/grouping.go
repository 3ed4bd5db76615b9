package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Programs returns the program names that running workers announce, each with the ids of the workers. Workers without
// a program name are left out.
func (f *Fleet) Programs() []string {
	return f.grouped(func(m *Member) string { return m.Program })
}

// Binaries returns the hashes of the executables of answering workers, each with the ids of the workers.
func (f *Fleet) Binaries() []string {
	return f.grouped(func(m *Member) string {
		if m.Figures == nil {
			return ""
		}
		return m.Figures.Binary
	})
}

// grouped returns the values of a property of the workers that are not gone, each with their ids.
func (f *Fleet) grouped(what func(*Member) string) (out []string) {
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

// clipped joins the first few names.
func clipped(names []string) string {
	const most = 3
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}
