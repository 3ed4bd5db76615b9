package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// problemTypes is the page that explains each type of problem, under its name.
const problemTypes = "https://github.com/settlehq/settle/blob/main/docs/problems.md#"

// problem is a type of error (RFC 9457).
type problem struct {
	name, title string
	status      int
}

// The types of problems. docs/problems.md explains each.
var (
	badRequestProblem = problem{"bad-request", "The request is not valid", http.StatusBadRequest}
	tokenNeeded       = problem{"token-needed", "A valid token is needed", http.StatusUnauthorized}
	forbidden         = problem{"forbidden", "The caller may not do this", http.StatusForbidden}
	notFound          = problem{"not-found", "There is no such thing", http.StatusNotFound}
	noDocument        = problem{"no-document", "The space has no such document", http.StatusNotFound}
	noProgram         = problem{"no-program", "The space runs no program", http.StatusNotFound}
	internalStream    = problem{"internal-stream", "Clients may not send on the stream", http.StatusForbidden}
	methodNotAllowed  = problem{"method-not-allowed", "The path does not take this method", http.StatusMethodNotAllowed}
	setAside          = problem{"set-aside", "The space waits for a decision of an operator", http.StatusConflict}
	keyTooOld         = problem{"key-too-old", "The key of the event is older than the horizon", http.StatusGone}
	tooLarge          = problem{"too-large", "It is too large", http.StatusRequestEntityTooLarge}
	unsupportedType   = problem{"unsupported-type", "The type or the encoding of the body is not supported", http.StatusUnsupportedMediaType}
	keyReused         = problem{"key-reused", "The key belongs to an event with another payload", http.StatusUnprocessableEntity}
	tooManyRequests   = problem{"too-many-requests", "The caller has reached a limit", http.StatusTooManyRequests}
	internalError     = problem{"internal-error", "The worker could not answer", http.StatusInternalServerError}
	unavailable       = problem{"unavailable", "Not now, or not by this worker", http.StatusServiceUnavailable}
	timeout           = problem{"timeout", "There was no answer in time", http.StatusGatewayTimeout}
	problemsByStatus  = byStatus(badRequestProblem, tokenNeeded, forbidden, notFound, methodNotAllowed, setAside, keyTooOld, tooLarge, unsupportedType, keyReused, tooManyRequests, internalError, unavailable, timeout)
	problemsByOutcome = map[model.Outcome]problem{
		model.Rejected:  {"rejected", "The handler has rejected the event", http.StatusUnprocessableEntity},
		model.Failed:    {"failed", "The handler has failed", http.StatusUnprocessableEntity},
		model.Refused:   {"refused", "The program has refused the event", http.StatusUnprocessableEntity},
		model.Cancelled: {"cancelled", "The event was cancelled", http.StatusUnprocessableEntity},
		model.Expired:   {"expired", "The event has expired", http.StatusUnprocessableEntity},
	}
)

func byStatus(all ...problem) map[int]problem {
	m := map[int]problem{}
	for _, p := range all {
		m[p.status] = p
	}
	return m
}

// body returns what is answered; detail is for people.
func (p problem) body(detail string) map[string]any {
	return map[string]any{"type": problemTypes + p.name, "title": p.title, "status": p.status, "detail": detail}
}

// write answers with the problem and further members.
func (p problem) write(w http.ResponseWriter, detail string, more map[string]any) {
	body := p.body(detail)
	maps.Copy(body, more)
	w.Header().Del("ETag")
	w.Header().Set("Content-Type", "application/problem+json")
	writeJSON(w, p.status, body)
}

// problemOf returns the type of an error of a source, and the text that goes with it.
func problemOf(err error) (problem, string) {
	if said, is := errors.AsType[*model.ServiceError](err); is {
		if p, known := problemsByStatus[said.Code]; known {
			return p, said.Text
		}
		return problem{"internal-error", internalError.title, said.Code}, said.Text
	}
	_, badName := errors.AsType[*model.NameError](err)
	_, internal := errors.AsType[*model.InternalStreamError](err)
	switch {
	case internal:
		return internalStream, err.Error()
	case badName:
		return badRequestProblem, err.Error()
	case errors.Is(err, model.ErrNoProgram):
		return noProgram, err.Error()
	case errors.Is(err, model.ErrTooLarge):
		return tooLarge, err.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return timeout, err.Error()
	case errors.Is(err, context.Canceled), errors.Is(err, model.ErrStopped), errors.Is(err, model.ErrElsewhere), errors.Is(err, model.ErrNoResponder), errors.Is(err, model.ErrLaneFull), errors.Is(err, port.ErrNoServer):
		return unavailable, err.Error()
	}
	return internalError, err.Error()
}

// failWith answers with an error of the source.
func failWith(w http.ResponseWriter, err error) {
	p, detail := problemOf(err)
	if p.status == http.StatusServiceUnavailable {
		Unavailable(w, detail)
		return
	}
	p.write(w, detail, nil)
}

// Unavailable answers that there is no worker at the moment, for Config.API.
func Unavailable(w http.ResponseWriter, detail string) {
	w.Header().Set("Retry-After", "1")
	unavailable.write(w, detail, nil)
}

// fail answers with the general problem of a status.
func fail(w http.ResponseWriter, status int, detail string) {
	problemsByStatus[status].write(w, detail, nil)
}

// answerJSON answers with an object that is not to be cached.
func answerJSON(w http.ResponseWriter, status int, object map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	writeJSON(w, status, object)
}

func writeJSON(w http.ResponseWriter, status int, object map[string]any) {
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(object) // the client may be gone
}

// missed answers requests that no route takes, as problems.
func missed(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, route := mux.Handler(r); route != "" {
			mux.ServeHTTP(w, r)
			return
		}
		said := &verdict{header: http.Header{}}
		mux.ServeHTTP(said, r)
		if said.status == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", said.header.Get("Allow"))
			fail(w, said.status, "this path takes "+said.header.Get("Allow"))
			return
		}
		fail(w, http.StatusNotFound, "there is no such path; see https://pkg.go.dev/github.com/settlehq/settle/gateway")
	})
}

// verdict keeps the header and the status of an answer, and drops its body.
type verdict struct {
	header http.Header
	status int
}

func (v *verdict) Header() http.Header            { return v.header }
func (v *verdict) WriteHeader(status int)         { v.status = status }
func (v *verdict) Write(data []byte) (int, error) { return len(data), nil }
