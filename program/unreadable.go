package program

import (
	"context"
	"fmt"
	"strings"

	"github.com/settlehq/settle/program/star"
)

// Unreadable returns the documents that deployed versions of a program name in a later version than another one does, which replaces them. A version that
// cannot be read or compiled is passed over.
func Unreadable(ctx context.Context, records Records, from []Target, to Target) (all []star.Unreadable) {
	compiled := func(t Target) *star.Program {
		v, err := Load(ctx, records, t)
		if err != nil {
			return nil
		}
		p, _ := star.Compile(v.Source(), star.Options{}) // nil if there is an error
		return p
	}
	before := compiled(to)
	if before == nil {
		return nil
	}
	latest := map[string]int{}
	for _, t := range from {
		if t == to {
			continue
		}
		p := compiled(t)
		if p == nil {
			continue
		}
		for _, u := range p.Unreadable(before) {
			if at, known := latest[u.Document]; known {
				if all[at].Written < u.Written {
					all[at] = u
				}
				continue
			}
			latest[u.Document] = len(all)
			all = append(all, u)
		}
	}
	return all
}

// UnreadableText warns that spaces which have written the documents stand still with a version of a program, "" if there are none.
func UnreadableText(to Target, all []star.Unreadable) string {
	if len(all) == 0 {
		return ""
	}
	var documents, counted []string
	for _, u := range all {
		documents, counted = append(documents, u.String()), append(counted, u.Counted())
	}
	return fmt.Sprintf("%s cannot read %s: the lane of a space that has written one waits until a program that reads it runs there; `settle upgrades %s` counts those that are stored",
		to, strings.Join(documents, ", "), strings.Join(counted, " "))
}
