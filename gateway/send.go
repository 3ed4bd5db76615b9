package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/settlehq/settle/model"
)

// Event is an event that a caller sends.
type Event struct {
	// By is the principal that sends it, "" for none. It comes from the token of the request.
	By            string
	Space, Stream string
	// ID is what the caller has chosen as the idempotency key, in any characters; "" if it has chosen none.
	ID      string
	Payload model.Value
	// NotBefore and Expires are zero if they were not given.
	NotBefore, Expires time.Time
}

// Ingress takes events.
type Ingress interface {
	// Send stores an event, with an id of its own if e.ID is empty, and returns the id, and whether the event had been sent
	// before. Nothing is stored if the error is a *model.ServiceError, a *model.InternalStreamError or model.ErrNoProgram.
	Send(ctx context.Context, e *Event) (id string, duplicate bool, err error)
	// Await returns the receipt of a stored event with that id. It blocks until ctx ends.
	Await(ctx context.Context, e *Event, id string) (*model.Receipt, error)
}

const (
	// maxBody is the largest payload. A server takes no larger message unless it was configured to.
	maxBody = 1 << 20
	// maxKey is the length of the largest idempotency key.
	maxKey = 256
	// defaultWait and maxWait bound the wait for a receipt.
	defaultWait, maxWait = 10 * time.Second, time.Minute
)

// send stores an event.
func (h handler) send(w http.ResponseWriter, r *http.Request) {
	space, stream := r.PathValue("space"), r.PathValue("stream")
	refused := callerOf(r).maySend(space, stream)
	if refused != "" {
		h.deny(callerOf(r).name(), space, stream, refused)
	}
	limited(w, r, refused, false, func() {
		e := Event{By: callerOf(r).name(), Space: space, Stream: stream}
		rc := http.NewResponseController(w)
		_ = rc.SetReadDeadline(time.Now().Add(h.writeTimeout)) // not every writer supports it
		wait, err := e.read(w, r, time.Now())
		_ = rc.SetReadDeadline(time.Time{})
		if err != nil {
			failWith(w, err)
			return
		}
		id, duplicate, err := h.ingress.Send(r.Context(), &e)
		if err != nil {
			failWith(w, err)
			return
		}
		answer := map[string]any{"event": id, "duplicate": duplicate}
		h.await(w, r, &e, id, wait, answer)
	})
}

// Denials is an Ingress that remembers the events which their sender may not send. They are not stored.
type Denials interface {
	Denied(principal, space, stream, reason string)
}

// deny passes a refusal on. A request with names that nothing can have is only refused.
func (h handler) deny(principal, space, stream, reason string) {
	if d, is := h.ingress.(Denials); is && model.CheckName("space", space) == nil && model.CheckSendStream(stream) == nil {
		d.Denied(principal, space, stream, reason)
	}
}

// await answers with the receipt of an event, or that it is stored and has none yet.
func (h handler) await(w http.ResponseWriter, r *http.Request, e *Event, id string, wait time.Duration, answer map[string]any) {
	if wait == 0 {
		answerJSON(w, http.StatusAccepted, answer)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	defer context.AfterFunc(h.waits, cancel)()
	rc, err := h.ingress.Await(ctx, e, id)
	switch {
	case err != nil && ctx.Err() != nil:
		answer["pending"] = "there is no receipt yet; the event is stored and will be handled"
		answerJSON(w, http.StatusAccepted, answer)
	case err != nil:
		answer["pending"] = "the event is stored; its receipt could not be awaited: " + err.Error()
		answerJSON(w, http.StatusAccepted, answer)
	default:
		answerReceipt(w, rc, answer)
	}
}

// answerReceipt answers with the receipt.
func answerReceipt(w http.ResponseWriter, rc *model.Receipt, answer map[string]any) {
	answer["outcome"] = rc.Outcome
	switch {
	case rc.Outcome == model.Rejected:
		answer["code"] = rc.Code
		if !rc.Result.IsAbsent() {
			answer["data"] = rc.Result
		}
	case !rc.Result.IsAbsent():
		answer["result"] = rc.Result
	}
	if rc.Outcome == model.Handled {
		answerJSON(w, http.StatusOK, answer)
		return
	}
	p, known := problemsByOutcome[rc.Outcome]
	if !known { // that of a later version
		p = problemsByOutcome[model.Failed]
	}
	p.write(w, rc.Error, answer)
}

// read reads the event from a request. The error is a *model.ServiceError.
func (e *Event) read(w http.ResponseWriter, r *http.Request, now time.Time) (wait time.Duration, err error) {
	if e.ID, err = keyOf(r); err != nil {
		return 0, err
	}
	if wait, err = waitOf(r); err != nil {
		return 0, err
	}
	if e.NotBefore, err = timeOf(r, "after", now); err != nil {
		return 0, err
	}
	if e.Expires, err = timeOf(r, "expires", now); err != nil {
		return 0, err
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if tooLarge, is := errors.AsType[*http.MaxBytesError](err); is {
		return 0, &model.ServiceError{Code: http.StatusRequestEntityTooLarge, Text: fmt.Sprintf("the payload has more than %d bytes", tooLarge.Limit)}
	}
	if err != nil {
		return 0, badRequest("the body could not be read: %v", err)
	}
	if len(body) == 0 {
		return wait, nil
	}
	// A page of another site cannot send this type without asking first, and the answer is no.
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return 0, &model.ServiceError{Code: http.StatusUnsupportedMediaType, Text: "the payload is JSON: send it with Content-Type: application/json"}
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return 0, &model.ServiceError{Code: http.StatusUnsupportedMediaType, Text: fmt.Sprintf("a payload with Content-Encoding %.40q is not decoded: send it as it is", coding)}
	}
	if e.Payload, err = model.ParseValue(body); err != nil {
		return 0, badRequest("the payload is not JSON: %v", err)
	}
	return wait, nil
}

func badRequest(format string, args ...any) error {
	return &model.ServiceError{Code: model.CodeBadRequest, Text: fmt.Sprintf(format, args...)}
}

// keyOf returns the idempotency key, with or without the quotes of a structured header; "" for none.
func keyOf(r *http.Request) (string, error) {
	keys := r.Header.Values("Idempotency-Key")
	if len(keys) == 0 {
		return "", nil
	}
	key := keys[0]
	if len(key) > 1 && strings.HasPrefix(key, `"`) && strings.HasSuffix(key, `"`) {
		key = key[1 : len(key)-1]
	}
	switch {
	case len(keys) > 1:
		return "", badRequest("there are %d headers Idempotency-Key; send one", len(keys))
	case key == "":
		return "", badRequest("the header Idempotency-Key is empty; leave it out, or name the event")
	case len(key) > maxKey:
		return "", badRequest("the Idempotency-Key has %d bytes, of which %d are allowed", len(key), maxKey)
	}
	return key, nil
}

// waitOf returns how long to wait for the receipt, 0 for not at all.
func waitOf(r *http.Request) (time.Duration, error) {
	q := r.URL.Query()
	switch q.Get("wait") {
	case "receipt":
	case "", "none":
		return 0, nil
	default:
		return 0, badRequest("wait is %q; use receipt, or leave it out", q.Get("wait"))
	}
	text := q.Get("timeout")
	if text == "" {
		return defaultWait, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > maxWait {
		return 0, badRequest("timeout is %q; use a duration of at most %v, such as 5s", text, maxWait)
	}
	return d, nil
}

// timeOf returns the time that a parameter gives as a duration from now, the zero time if it is not given.
func timeOf(r *http.Request, name string, now time.Time) (time.Time, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return time.Time{}, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return time.Time{}, badRequest("%s is %q; use a positive duration, such as 90s or 36h", name, text)
	}
	return now.Add(d), nil
}
