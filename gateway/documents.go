package gateway

import (
	"context"
	"net/http"
	"net/url"
)

// DocumentLister lists documents of a space. An Ingress that is one, too, makes the gateway answer such requests.
type DocumentLister interface {
	// ListDocuments returns what to answer, as JSON, to a request with these parameters: only documents for whose names mayRead is true.
	// The error is a *model.ServiceError if the parameters are not valid.
	ListDocuments(ctx context.Context, space string, parameters url.Values, mayRead func(document string) bool) (any, error)
}

// documents answers with the documents of a space.
func (h handler) documents(w http.ResponseWriter, r *http.Request) {
	h.search(w, r, func(ctx context.Context, c *caller) (any, error) {
		space := r.PathValue("space")
		return h.lister.ListDocuments(ctx, space, r.URL.Query(), func(document string) bool { return c.mayRead(space, document) == "" })
	})
}
