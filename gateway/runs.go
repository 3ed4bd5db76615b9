package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/settlehq/settle/model"
)

// RunFinder finds runs of workflows. An Ingress that is one, too, makes the gateway answer searches.
type RunFinder interface {
	// FindRuns returns what to answer, as JSON, to a search with these parameters. Only what mayRead permits is read. The error
	// is a *model.ServiceError if the parameters are not valid.
	FindRuns(ctx context.Context, parameters url.Values, mayRead func(space, document string) bool) (any, error)
}

const (
	// searches is how many searches a gateway answers at a time: each may read the documents of many spaces.
	searches = 4
	// searchTime is how long one may take.
	searchTime = 30 * time.Second
)

// runs answers a search of runs.
func (h handler) runs(w http.ResponseWriter, r *http.Request) {
	h.search(w, r, func(ctx context.Context, c *caller) (any, error) {
		return h.finder.FindRuns(ctx, r.URL.Query(), func(space, document string) bool { return c.mayRead(space, document) == "" })
	})
}

// search answers a request that may read many documents.
func (h handler) search(w http.ResponseWriter, r *http.Request, find func(ctx context.Context, c *caller) (any, error)) {
	limited(w, r, "", false, func() {
		select {
		case h.searching <- struct{}{}:
			defer func() { <-h.searching }()
		default:
			w.Header().Set("Retry-After", "1")
			fail(w, http.StatusTooManyRequests, "this worker answers other searches at the moment")
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), searchTime)
		defer cancel()
		defer context.AfterFunc(h.waits, cancel)()
		answer, err := find(ctx, callerOf(r))
		if err != nil && ctx.Err() != nil {
			err = &model.ServiceError{Code: model.CodeUnavailable, Text: "the search has taken too long; name fewer spaces"}
		}
		if err != nil {
			failWith(w, err)
			return
		}
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(h.writeTimeout)) // not every writer supports it
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(answer) // the client may be gone
	})
}
