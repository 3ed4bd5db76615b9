package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// handler answers requests that have access.
type handler struct {
	source       Source
	ingress      Ingress         // nil if events are not taken
	waits        context.Context // ends when requests are no longer to wait for receipts
	writeTimeout time.Duration
	finder       RunFinder      // nil if runs are not searched
	lister       DocumentLister // nil if documents are not listed
	spaces       SpaceFinder    // nil if no event is sent to all spaces of a pattern
	searching    chan struct{}  // has an element for each search
}

// get answers with a document.
func (h handler) get(w http.ResponseWriter, r *http.Request) {
	q := live.Get{Space: r.PathValue("space"), Document: r.PathValue("document")}
	limited(w, r, callerOf(r).mayRead(q.Space, q.Document), false, func() { h.read(w, r, q) })
}

func (h handler) read(w http.ResponseWriter, r *http.Request, q live.Get) {
	if t := r.URL.Query().Get("timeout"); t != "" {
		if err := q.Timeout.UnmarshalText([]byte(t)); err != nil {
			fail(w, http.StatusBadRequest, "timeout: "+err.Error())
			return
		}
	}
	a, err := h.source.Get(r.Context(), q)
	if err != nil {
		failWith(w, err)
		return
	}
	head := w.Header()
	head.Set("Cache-Control", "no-cache") // revalidate, with If-None-Match
	head.Set("ETag", `"`+a.Known().String()+`"`)
	if a.Stale != "" {
		head.Del("ETag") // the document may become current with the same revision
		head.Set("Settle-Stale", oneLine(a.Stale))
	}
	if !a.Found {
		fail(w, http.StatusNotFound, fmt.Sprintf("space %s has no document %s", a.Space, a.Document))
		return
	}
	head.Set("Content-Type", "application/json")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(h.writeTimeout)) // not every writer supports it
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.Value))
}

// watch answers with events until the client or the worker leaves.
func (h handler) watch(w http.ResponseWriter, r *http.Request) {
	space, document := r.PathValue("space"), r.PathValue("document")
	limited(w, r, callerOf(r).mayRead(space, document), true, func() { h.follow(w, r, space, document) })
}

func (h handler) follow(w http.ResponseWriter, r *http.Request, space, document string) {
	from, err := resumeAt(r)
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	s := stream{w: w, rc: http.NewResponseController(w), timeout: h.writeTimeout}
	q := live.Watch{Space: space, Document: document, From: from}
	permitted := callerOf(r).stillReads(space, document)
	err = h.source.Watch(r.Context(), q, func(e live.Event) error {
		if err := permitted(); err != nil {
			return err
		}
		return s.event(e)
	})
	switch said, is := errors.AsType[*model.ServiceError](err); {
	case s.begun: // ending the stream makes a browser reconnect
	case is && said.Code != model.CodeUnavailable:
		fail(w, said.Code, said.Text)
	case r.Context().Err() == nil:
		// Browsers do not reconnect after an error status, and this error is temporary.
		_ = s.begin(": " + oneLine(err.Error()) + "\n\n") // best effort
	}
}

// resumeAt returns the value that the client has, from the browser or from the page.
func resumeAt(r *http.Request) (known live.Known, err error) {
	for _, from := range []string{r.Header.Get("Last-Event-ID"), r.URL.Query().Get("from")} {
		if from != "" {
			return known, known.UnmarshalText([]byte(from))
		}
	}
	return known, nil
}

// stream is the body of a watch.
type stream struct {
	w       http.ResponseWriter
	rc      *http.ResponseController
	timeout time.Duration
	begun   bool
}

// event sends an event of the watch.
func (s *stream) event(e live.Event) error {
	switch e.Kind {
	case live.Value:
		return s.send(fmt.Sprintf("id: %s\nevent: value\ndata: %s\n\n", e.Known(), e.Data))
	case live.Deleted:
		return s.send(fmt.Sprintf("id: %s\nevent: deleted\ndata: null\n\n", e.Known()))
	case live.Stale:
		why, err := json.Marshal(e.Stale)
		if err != nil {
			return err
		}
		return s.send(fmt.Sprintf("event: stale\ndata: %s\n\n", why))
	case live.Current:
		return s.send("event: current\ndata: null\n\n") // EventSource ignores an event without data
	case live.Rewound:
		return s.send("id: 0\nevent: rewound\ndata: null\n\n")
	case live.Moved:
		return s.send(": the worker leaves\n\n")
	default:
		return s.send(": \n\n")
	}
}

func (s *stream) send(text string) error {
	if s.begun {
		return s.write(text)
	}
	return s.begin(text)
}

// begin sends the header and the first event.
func (s *stream) begin(text string) error {
	s.begun = true
	h := s.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // keep nginx from buffering
	s.w.WriteHeader(http.StatusOK)
	return s.write("retry: " + strconv.FormatInt(retryAfter.Milliseconds(), 10) + "\n\n" + text)
}

// write limits the time that a client may take to read.
func (s *stream) write(text string) error {
	if err := s.rc.SetWriteDeadline(time.Now().Add(s.timeout)); err != nil {
		return err
	}
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.rc.Flush()
}

// failWith answers with an error of the source.
func failWith(w http.ResponseWriter, err error) {
	switch said, is := errors.AsType[*model.ServiceError](err); {
	case is && said.Code == model.CodeUnavailable:
		w.Header().Set("Retry-After", "1")
		fail(w, said.Code, said.Text)
	case is:
		fail(w, said.Code, said.Text)
	case errors.Is(err, model.ErrTooLarge):
		fail(w, http.StatusRequestEntityTooLarge, err.Error())
	case errors.Is(err, context.Canceled), errors.Is(err, model.ErrStopped), errors.Is(err, model.ErrNoResponder), errors.Is(err, model.ErrLaneFull), errors.Is(err, port.ErrNoServer):
		w.Header().Set("Retry-After", "1")
		fail(w, http.StatusServiceUnavailable, err.Error())
	default:
		fail(w, http.StatusInternalServerError, err.Error())
	}
}

// fail answers with an error.
func fail(w http.ResponseWriter, code int, text string) {
	answerJSON(w, code, map[string]any{"error": text})
}

// answerJSON answers with an object that is not to be cached.
func answerJSON(w http.ResponseWriter, code int, object map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object) // the client may be gone
}

// oneLine returns text in a form that fits in a header or a comment.
func oneLine(text string) string {
	b := []byte(text)
	for i := range b {
		if b[i] < ' ' || b[i] == 0x7f {
			b[i] = ' '
		}
	}
	return string(b)
}
