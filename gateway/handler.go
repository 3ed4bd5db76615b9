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
	sockets      *sockets
	searching    chan struct{} // has an element for each search
}

// get answers with a document, or a part of it.
func (h handler) get(w http.ResponseWriter, r *http.Request) {
	d := wanted{Get: live.Get{Space: r.PathValue("space"), Document: r.PathValue("document")}}
	limited(w, r, callerOf(r).mayRead(d.Space, d.Document), false, func() { h.read(w, r, &d) })
}

func (h handler) read(w http.ResponseWriter, r *http.Request, d *wanted) {
	if err := d.read(r.URL.Query()); err != nil {
		failWith(w, err)
		return
	}
	a, err := h.source.Get(r.Context(), d.Get)
	if said, is := errors.AsType[*model.ServiceError](err); is && said.Code == model.CodeNotFound { // of the owner of the space
		noProgram.write(w, said.Text, nil)
		return
	}
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
	switch {
	case !a.Found:
		noDocument.write(w, fmt.Sprintf("space %s has no %s", d.Space, d.where()), nil)
		return
	case d.paged:
		d.answerPage(w, &a, h.writeTimeout)
		return
	}
	head.Set("Content-Type", "application/json")
	for _, of := range []string{"Range", "If-Range", "If-Match", "If-Unmodified-Since"} { // half a document is no JSON
		r.Header.Del(of)
	}
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
	switch {
	case s.begun: // ending the stream makes a browser reconnect
	case isFinal(err):
		failWith(w, err)
	case r.Context().Err() == nil:
		// Browsers do not reconnect after an error status, and this error is temporary.
		_ = s.begin(": " + oneLine(err.Error()) + "\n\n") // best effort
	}
}

// isFinal reports whether a watch that could not begin is not to be tried again.
func isFinal(err error) bool {
	_, said := errors.AsType[*model.ServiceError](err)
	p, _ := problemOf(err)
	return p.status < http.StatusInternalServerError || said && p.status != http.StatusServiceUnavailable
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
