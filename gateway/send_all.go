package gateway

import (
	"context"
	"net/http"
	"time"

	"github.com/settlehq/settle/model"
)

// SpaceFinder lists spaces. An Ingress that is one, too, makes the gateway take events for all spaces of a pattern.
type SpaceFinder interface {
	// FindSpaces returns the spaces behind a name, in order, that match a pattern, limit of them at most, and the last of them if there are more.
	FindSpaces(ctx context.Context, pattern, after string, limit int) (names []string, next string, err error)
}

// sendsAtATime is how many spaces get the event of one request.
const sendsAtATime = 1000

// sendAll stores an event for a page of the spaces that match a pattern.
func (h handler) sendAll(w http.ResponseWriter, r *http.Request) {
	h.search(w, r, func(ctx context.Context, c *caller) (any, error) {
		rc := http.NewResponseController(w)
		_ = rc.SetReadDeadline(time.Now().Add(h.writeTimeout)) // not every writer supports it
		e := Event{By: c.name(), Stream: r.PathValue("stream")}
		wait, err := e.read(w, r, time.Now())
		_ = rc.SetReadDeadline(time.Time{})
		q := r.URL.Query()
		switch {
		case err != nil:
			return nil, err
		case wait != 0:
			return nil, badRequest("an event for all spaces of a pattern is not waited for; ask for the receipt in a space by sending the event there again, under its key")
		case e.ID == "":
			return nil, badRequest("the header Idempotency-Key is missing: under it the event takes effect once in each space, and the request can be repeated")
		case model.CheckPattern("spaces", q.Get("spaces")) != nil:
			return nil, badRequest("parameter spaces: %v", model.CheckPattern("spaces", q.Get("spaces")))
		}
		names, next, err := h.spaces.FindSpaces(ctx, q.Get("spaces"), q.Get("from"), sendsAtATime)
		if err != nil {
			return nil, err
		}
		answer := sentAll{Next: next}
		for _, name := range names {
			if err := h.sendOne(ctx, c, e, name, &answer); err != nil {
				return nil, err
			}
		}
		return answer, nil
	})
}

// sentAll is the answer to such a request.
type sentAll struct {
	Event string `json:"event,omitzero"`
	// Sent is how many spaces have the event, Before how many of them had it before.
	Sent    int      `json:"sent"`
	Before  int      `json:"before"`
	Refused []string `json:"refused,omitempty"`
	Next    string   `json:"next,omitzero"`
}

// sendOne stores the event for one space. A space that the caller may not send to, or whose program does not handle the event, is listed.
func (h handler) sendOne(ctx context.Context, c *caller, e Event, space string, answer *sentAll) error {
	e.Space = space
	if why := c.maySend(space, e.Stream); why != "" {
		h.deny(c.name(), space, e.Stream, why)
		answer.Refused = append(answer.Refused, space+": "+why)
		return nil
	}
	id, before, err := h.ingress.Send(ctx, &e)
	if err != nil {
		p, detail := problemOf(err)
		if p.status >= http.StatusInternalServerError {
			return err
		}
		answer.Refused = append(answer.Refused, space+": "+detail)
		return nil
	}
	answer.Event = id
	answer.Sent++
	if before {
		answer.Before++
	}
	return nil
}
