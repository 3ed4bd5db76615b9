package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/settlehq/settle/model"
)

// Kinds of questions.
const (
	AskWhy     = "why"
	AskLane    = "lane"
	AskGraph   = "graph"
	AskLog     = "log"
	AskHistory = "history"
	AskTop     = "top"
)

// Question is a question about a space, or about all of them.
type Question struct {
	// Kind is one of AskWhy, AskLane, AskGraph, AskLog, AskHistory and AskTop.
	Kind string
	// Space is "" for AskTop. Of is a node, a document or an event; As says which (node, document, event), "" for the first that exists.
	// Stream is that of the event.
	Space, Of, As, Stream string
	// Path is a place in the document.
	Path model.Path
	// Depth bounds the neighbourhood of a node, After and Before name where a page begins, Limit bounds it; 0 for the defaults.
	Depth, After, Limit int
	Before              uint64
	// Load loads a space that is not in memory.
	Load bool
	// Interval is for how long AskTop measures, and Sort by what it sorts.
	Interval time.Duration
	Sort     string
}

// Questions answers questions.
type Questions interface {
	// Ask returns the answer, which becomes JSON as that of the command of the same name.
	Ask(ctx context.Context, q *Question) (any, error)
}

const (
	// maxAnswerTime bounds the time for an answer, maxAsking how many a gateway works on at a time.
	maxAnswerTime = 30 * time.Second
	maxAsking     = 16
	// defaultInterval and the bounds of the time for which AskTop measures.
	defaultInterval = 2 * time.Second
	minInterval     = 100 * time.Millisecond
	maxInterval     = 10 * time.Second
)

// asking answers questions over HTTP.
type asking struct {
	of           Questions
	writeTimeout time.Duration
	slots        chan struct{}
}

// route registers the paths of questions.
func (a *asking) route(mux *http.ServeMux) {
	mux.HandleFunc("GET /v1/spaces/{space}/why/{name}", a.about(AskWhy, "as", "stream", "limit", "load"))
	mux.HandleFunc("GET /v1/spaces/{space}/lane", a.about(AskLane, "after", "limit", "load"))
	mux.HandleFunc("GET /v1/spaces/{space}/graph", a.about(AskGraph, "node", "depth", "after", "limit", "load"))
	mux.HandleFunc("GET /v1/spaces/{space}/log", a.about(AskLog, "document", "before", "limit"))
	mux.HandleFunc("GET /v1/spaces/{space}/documents/{document}/history", a.about(AskHistory, "path", "before", "limit"))
	mux.HandleFunc("GET /v1/top", a.about(AskTop, "interval", "sort", "limit"))
}

// about answers one kind of question with these parameters.
func (a *asking) about(kind string, params ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q := &Question{Kind: kind, Space: r.PathValue("space"), Of: r.PathValue("name") + r.PathValue("document")}
		refused := ""
		if kind == AskTop {
			refused = callerOf(r).mayReadEverything()
		} else {
			refused = callerOf(r).mayReadAll(q.Space)
		}
		limited(w, r, refused, false, func() {
			if err := q.read(r.URL.Query(), params); err != nil {
				failWith(w, err)
				return
			}
			a.answer(w, r, q)
		})
	}
}

func (a *asking) answer(w http.ResponseWriter, r *http.Request, q *Question) {
	select {
	case a.slots <- struct{}{}:
		defer func() { <-a.slots }()
	default:
		w.Header().Set("Retry-After", "1")
		fail(w, http.StatusServiceUnavailable, fmt.Sprintf("%d questions are being answered, the limit of this worker; ask again", cap(a.slots)))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), maxAnswerTime)
	defer cancel()
	answer, err := a.of.Ask(ctx, q)
	if err == nil {
		var data []byte
		if data, err = json.Marshal(answer); err == nil {
			h := w.Header()
			h.Set("Content-Type", "application/json")
			h.Set("Cache-Control", "no-store")
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(a.writeTimeout)) // not every writer supports it
			_, _ = w.Write(append(data, '\n'))                                                 // the client may be gone
			return
		}
	}
	if ctx.Err() != nil && r.Context().Err() == nil {
		err = &model.ServiceError{Code: http.StatusGatewayTimeout, Text: fmt.Sprintf("no answer within %v", maxAnswerTime)}
	}
	failWith(w, err)
}

// read reads the parameters of a question. The error is a *model.ServiceError.
func (q *Question) read(given url.Values, params []string) (err error) {
	for name, values := range given { // any order: each on its own
		if name == "access_token" {
			continue
		}
		if !slices.Contains(params, name) {
			return badRequest("parameter %.40q is not known here; there are %s", name, params)
		}
		if len(values) != 1 && name != "path" {
			return badRequest("parameter %s is given %d times", name, len(values))
		}
	}
	text := func(name string) string { return given.Get(name) }
	q.As, q.Stream, q.Path, q.Sort = text("as"), text("stream"), given["path"], text("sort")
	q.Of += text("node") + text("document")
	q.Interval = defaultInterval
	if t := text("interval"); t != "" {
		if q.Interval, err = time.ParseDuration(t); err != nil || q.Interval < minInterval || q.Interval > maxInterval {
			return badRequest("interval is %.40q; use a duration from %v to %v", t, minInterval, maxInterval)
		}
	}
	for name, into := range map[string]*int{"depth": &q.Depth, "after": &q.After, "limit": &q.Limit} { // any order: each on its own
		if t := text(name); t != "" {
			if *into, err = strconv.Atoi(t); err != nil || *into < 0 {
				return badRequest("%s is %.40q; use a number that is not negative", name, t)
			}
		}
	}
	if t := text("before"); t != "" {
		if q.Before, err = strconv.ParseUint(t, 10, 64); err != nil || q.Before > model.MaxNumber {
			return badRequest("before is %.40q; use a revision", t)
		}
	}
	if t := text("load"); t != "" {
		if q.Load, err = strconv.ParseBool(t); err != nil {
			return badRequest("load is %.40q; use true, or leave it out", t)
		}
	}
	return nil
}
