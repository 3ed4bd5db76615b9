package settle

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/questions"
	"github.com/settlehq/settle/worker"
)

// askedOverHTTP answers the questions that a worker's gateway receives. The gateway has checked the rights of the caller, so that it asks as the
// operator does.
type askedOverHTTP struct {
	bus    port.Client
	worker *worker.Worker
}

// Ask implements gateway.Questions.
func (a *askedOverHTTP) Ask(ctx context.Context, q *gateway.Question) (any, error) {
	client := &questions.Client{Bus: a.bus, Principal: model.Operator}
	about := questions.Query{Space: q.Space, Of: q.Of, As: questions.Kind(q.As), Stream: q.Stream, Depth: q.Depth, Load: q.Load, Limit: q.Limit, After: q.After}
	switch q.Kind {
	case gateway.AskWhy:
		return client.Why(ctx, about)
	case gateway.AskLane:
		return client.Lane(ctx, about)
	case gateway.AskGraph:
		return client.Graph(ctx, about)
	case gateway.AskTop:
		return a.top(ctx, client, q)
	case gateway.AskLog, gateway.AskHistory:
		return a.log(ctx, q)
	}
	return nil, fmt.Errorf("no such question: %s", q.Kind)
}

// maxLogOverHTTP bounds the commits of an answer.
const maxLogOverHTTP = 200

// log reads a page of the log.
func (a *askedOverHTTP) log(ctx context.Context, q *gateway.Question) (any, error) {
	about := history.LogQuery{Document: q.Of, Path: q.Path, Before: q.Before, Limit: q.Limit}
	err := about.Check(q.Space)
	if err == nil && q.Limit > maxLogOverHTTP {
		err = fmt.Errorf("a limit of %d commits: use 1 to %d", q.Limit, maxLogOverHTTP)
	}
	if err != nil {
		return nil, &model.ServiceError{Code: model.CodeBadRequest, Text: err.Error()}
	}
	page, err := history.ReadEntries(ctx, a.bus, q.Space, about)
	if err != nil {
		return nil, err
	}
	if page.Head == 0 {
		return nil, &model.ServiceError{Code: model.CodeNotFound, Text: "there is no space " + q.Space + ": nothing was ever handled there"}
	}
	if q.Kind == gateway.AskLog {
		return page, nil
	}
	return valuesPage{page.Values(q.Space), page.End, page.Next, page.Head}, nil
}

// valuesPage is a page of the past values of a document, newest first; the other fields are those of history.Page.
type valuesPage struct {
	Changes []history.ValueChange `json:"changes"`
	End     history.Boundary      `json:"end"`
	Next    uint64                `json:"next,omitzero"`
	Head    uint64                `json:"head"`
}

// top measures all workers for some time.
func (a *askedOverHTTP) top(ctx context.Context, client *questions.Client, q *gateway.Question) (any, error) {
	by, limit := q.Sort, q.Limit
	if by == "" {
		by = questions.Orders[0]
	}
	if limit == 0 {
		limit = 10
	}
	if !slices.Contains(questions.Orders, by) || limit > questions.MaxTop {
		return nil, &model.ServiceError{Code: model.CodeBadRequest, Text: fmt.Sprintf("sort %q, limit %d: sort by one of %v, and use a limit of 1 to %d", by, limit, questions.Orders, questions.MaxTop)}
	}
	m := questions.Meter{Ask: func(ctx context.Context, id string) (*questions.Top, error) { return client.Top(ctx, id, 0) }}
	workers := a.worker.Peers()
	_, err := m.Read(ctx, workers)
	if err == nil {
		err = pause.For(ctx, q.Interval)
	}
	if err != nil {
		return nil, errors.Join(err, ctx.Err())
	}
	got, err := m.Read(ctx, workers)
	if err != nil {
		return nil, err
	}
	got.Spaces, got.Nodes = questions.Largest(got.Spaces, by, limit), questions.Largest(got.Nodes, by, limit)
	return got, nil
}
