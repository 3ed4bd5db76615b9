package gateway

import (
	"context"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/settlehq/settle/model"
)

// maxListed bounds a page of names or of entries, usualListed is the limit of a page that has none.
const maxListed, usualListed = 1000, 100

// foundSpaces is a page of the spaces of a deployment.
type foundSpaces struct {
	Spaces []string `json:"spaces"`
	Next   string   `json:"next,omitzero"`
}

// listSpaces answers with the spaces that the caller may read something of.
func (h handler) listSpaces(w http.ResponseWriter, r *http.Request) {
	h.search(w, r, func(ctx context.Context, c *caller) (any, error) {
		q := r.URL.Query()
		if err := knownParameters(q, "spaces", "after", "limit"); err != nil {
			return nil, err
		}
		pattern := "*"
		if q.Has("spaces") {
			pattern = q.Get("spaces")
		}
		if err := model.CheckPattern("spaces", pattern); err != nil {
			return nil, badRequest("parameter spaces: %v", err)
		}
		limit, err := limitOf(q)
		if err != nil {
			return nil, err
		}
		names, _, err := h.spaces.FindSpaces(ctx, pattern, q.Get("after"), math.MaxInt)
		if err != nil {
			return nil, err
		}
		seen := &Visitor{c}
		answer := foundSpaces{Spaces: slices.DeleteFunc(slices.Clone(names), func(space string) bool { return !seen.SeesSpace(space) })}
		if len(answer.Spaces) > limit {
			answer.Spaces, answer.Next = answer.Spaces[:limit], answer.Spaces[limit-1]
		}
		if answer.Spaces == nil {
			answer.Spaces = []string{}
		}
		return answer, nil
	})
}

// knownParameters refuses parameters of a request that are unknown or given twice.
func knownParameters(q url.Values, known ...string) error {
	for name, values := range q { // any order: each on its own
		switch {
		case name == "access_token":
		case !slices.Contains(known, name):
			return badRequest("parameter %.40q is not known here; there are %s", name, known)
		case len(values) > 1 && name != "path":
			return badRequest("parameter %s is given %d times", name, len(values))
		}
	}
	return nil
}

// limitOf returns the limit of a page.
func limitOf(q url.Values) (int, error) {
	if !q.Has("limit") {
		return usualListed, nil
	}
	n, err := strconv.Atoi(q.Get("limit"))
	if err != nil || n < 1 || n > maxListed {
		return 0, badRequest("limit is %.40q; use a number from 1 to %d", q.Get("limit"), maxListed)
	}
	return n, nil
}
