package flow

import (
	"context"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/internal/runsearch"
	"github.com/settlehq/settle/runs"
)

// Search selects runs of several spaces, see [runs.Search].
type Search = runs.Search

// Found is a run that Find has found, with its space.
type Found = runs.Found

// FoundPage are runs that a search has found, the one started last first, see [runs.FoundPage].
type FoundPage = runs.FoundPage

// Find returns the runs of a deployment that a search selects, without arguments and outcomes, in pages. It reads a document of
// each space that the search covers, and needs no worker. Those of one space are found by Runs.Find.
func Find(ctx context.Context, client *settle.Client, s Search) (*FoundPage, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	spaces, err := client.Spaces(ctx)
	if err != nil {
		return nil, err
	}
	return runsearch.Find(ctx, &s, spaces, func(ctx context.Context, space, doc string) (settle.Value, error) {
		v, _, err := client.Space(space).Get(ctx, doc)
		return v, err
	})
}
