package console

import (
	"context"
	"slices"
	"strings"

	"github.com/settlehq/settle/internal/fleet"
)

// circle is a circle of computations of several spaces, which does not converge.
type circle struct {
	// Steps are the derived documents of the circle: each is read in the space of the next one, and the last in that of the first.
	Steps []step
}

// step is a document of a circle. Space and URL are "" if the visitor does not see the space.
type step struct{ Space, Doc, URL string }

// Text is the document with its space.
func (s step) Text() string {
	if s.Space == "" {
		return "another space"
	}
	return s.Space + "/" + s.Doc
}

// circles returns the circles over several spaces that go through a space.
func (c *Console) circles(ctx context.Context, space string, v sight) []circle {
	f, err := c.shared.Fleet(ctx, stuckAge)
	if err != nil {
		return nil // the page is complete without it
	}
	return circlesOf(f, space, v)
}

func circlesOf(f *fleet.Fleet, space string, v sight) (list []circle) {
	for i := range f.Workers {
		fig := f.Workers[i].Figures
		if fig == nil {
			continue
		}
		for k := range fig.Unsettled {
			u := &fig.Unsettled[k]
			if len(u.Through) == 0 || !slices.Contains(spacesOf(u), space) {
				continue
			}
			var of circle
			for _, at := range u.Through {
				in, doc, _ := strings.Cut(at, "/")
				if !v.SeesSpace(in) {
					of.Steps = append(of.Steps, step{})
					continue
				}
				of.Steps = append(of.Steps, step{in, doc, graphURL(in, doc)})
			}
			list = append(list, of)
		}
	}
	return list
}

// circleTitle is the first of them as a title of a page of a space, "" if there is none.
func circleTitle(space string, list []circle) string {
	if len(list) == 0 {
		return ""
	}
	var others []string
	for _, s := range list[0].Steps {
		if s.Space != "" && s.Space != space && !slices.Contains(others, s.Space) {
			others = append(others, s.Space)
		}
	}
	if len(others) == 0 {
		return space + " and another space derive from each other and do not converge"
	}
	return space + " and " + allOf(others) + " derive from each other and do not converge"
}

// titleOf returns the title of a page, and its state, with the circles: what has failed, or is stuck, comes first.
func titleOf(space, title, state string, list []circle) (string, string) {
	if round := circleTitle(space, list); round != "" && !slices.Contains([]string{"failed", "parked", "invalid"}, state) {
		return round, "invalid"
	}
	return title, state
}
