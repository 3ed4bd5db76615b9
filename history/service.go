package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// ServiceName is the name of the service that every coordinator offers.
const ServiceName = "settle-coordinator"

// The endpoints of the service.
const (
	AskTree    = "tree"
	AskReceipt = "receipt"
	AskDead    = "dead"
)

// answerTime bounds the time of one answer: a coordinator answers requests one after the other.
const answerTime = 10 * time.Second

// Service answers requests in JSON, for any NATS client. Its answers end with ctx.
func Service(ctx context.Context, bus port.Client) model.Service {
	return model.Service{
		Name:        ServiceName,
		Description: "What events caused, how they ended, and which failed.",
		Endpoints: []model.Endpoint{
			{Name: AskTree, Description: `What an event caused: {"event", "space", "stream", "max_events", "max_depth"}, only event required.`, Answer: answer(ctx, bus, ReadTree)},
			{Name: AskReceipt, Description: `How an event ended: {"space", "stream", "event"}.`, Answer: answer(ctx, bus, findReceipt)},
			{Name: AskDead, Description: `Events that failed or were refused: {"space", "after", "limit"}, all optional.`, Answer: answer(ctx, bus, deadPage)},
		},
	}
}

// answer turns a function into an endpoint.
func answer[Q, R any](ctx context.Context, bus port.Client, find func(context.Context, port.Client, Q) (R, error)) func([]byte) ([]byte, error) {
	return func(request []byte) ([]byte, error) {
		var q Q
		if len(request) > 0 {
			if err := json.Unmarshal(request, &q); err != nil {
				return nil, &model.ServiceError{Code: model.CodeBadRequest, Text: "the request does not have the expected JSON: " + err.Error()}
			}
		}
		ctx, cancel := context.WithTimeout(ctx, answerTime)
		defer cancel()
		r, err := find(ctx, bus, q)
		if err != nil {
			return nil, coded(err)
		}
		return json.Marshal(r)
	}
}

// coded gives an error its code.
func coded(err error) error {
	code := model.CodeFailed
	if _, ok := errors.AsType[*MissingError](err); ok {
		code = model.CodeNotFound
	}
	if _, ok := errors.AsType[*AmbiguousError](err); ok {
		code = model.CodeBadRequest
	}
	if _, ok := errors.AsType[*model.NameError](err); ok {
		code = model.CodeBadRequest
	}
	return &model.ServiceError{Code: code, Text: err.Error()}
}

// findReceipt returns how an event ended, as a tree without the events that it caused.
func findReceipt(ctx context.Context, bus port.Client, r EventRef) (*TreeNode, error) {
	h, err := FindReceipt(ctx, bus, r.Space, r.Stream, r.Event)
	if err == nil && h == nil {
		return nil, &MissingError{Space: r.Space, Stream: r.Stream, Event: r.Event, Receipt: true}
	}
	b := &branch{TreeNode: &TreeNode{EventRef: r}}
	return b.TreeNode, b.ended(h, err)
}

// DeadQuery requests a page of dead letters.
type DeadQuery struct {
	Space string `json:"space"`
	After uint64 `json:"after"`
	Limit int    `json:"limit"`
}

// DeadPage is a page of dead letters. Next is the After of the next page, 0 if there is none.
type DeadPage struct {
	Letters []Dead `json:"letters"`
	Next    uint64 `json:"next,omitempty"`
}

// MaxDeadPage bounds the letters of a page.
const MaxDeadPage = 100

func deadPage(ctx context.Context, bus port.Client, q DeadQuery) (*DeadPage, error) {
	if q.Limit <= 0 || q.Limit > MaxDeadPage {
		q.Limit = MaxDeadPage
	}
	letters, err := DeadLetters(ctx, bus, q.Space, q.After, q.Limit)
	if err != nil {
		return nil, err
	}
	page := &DeadPage{Letters: []Dead{}}
	room := bus.MaxPayload() * 3 / 4
	for i := range letters {
		d := &letters[i]
		size := 2*len(d.Bytes()) + 2*len(d.Error) + 1000 // raw payloads grow by a third, and quotes are escaped
		if len(page.Letters) == 0 && size > room {
			d.SetBytes(nil)
			d.Lost = fmt.Sprintf("too large for an answer (%d bytes); it is in the stream of dead letters", size/2)
			size = 0
		}
		if room -= size; room < 0 {
			break
		}
		page.Letters = append(page.Letters, *d)
	}
	if n := len(page.Letters); n == q.Limit || n < len(letters) {
		page.Next = page.Letters[n-1].Seq
	}
	return page, nil
}

// RequestTree is ReadTree by any coordinator. The error is model.ErrNoResponder if none answers.
func RequestTree(ctx context.Context, bus port.Client, q TreeQuery) (*Tree, error) {
	question, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	reply, err := bus.Ask(ctx, AskTree, question)
	if err != nil {
		return nil, err
	}
	var t Tree
	if err := json.Unmarshal(reply, &t); err != nil || t.Root == nil {
		return nil, fmt.Errorf("the answer about event %s is not a tree: %w", q.Event, err)
	}
	return &t, nil
}
