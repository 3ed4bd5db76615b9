package questions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// Client asks questions over NATS. Any worker of the deployment may answer those about a space.
type Client struct {
	// Bus sends the requests.
	Bus port.Services
	// Principal is in whose name requests are made; "" for a program that needs none.
	Principal string
}

// grace is how long a client keeps trying while no worker answers.
const grace = 3 * time.Second

// Why asks why a node, a document or an event of a space is as it is.
func (c *Client) Why(ctx context.Context, q Query) (*Why, error) { return ask[Why](ctx, c, AskWhy, &q) }

// Lane asks what waits in a space, and why.
func (c *Client) Lane(ctx context.Context, q Query) (*Lane, error) {
	return ask[Lane](ctx, c, AskLane, &q)
}

// IsInternal asks once whether clients may not send on a stream of a space.
func (c *Client) IsInternal(ctx context.Context, space, stream string) (bool, error) {
	q := Query{Space: space, Stream: stream}
	if err := q.check(AskLane); err != nil {
		return false, err
	}
	a, err := askAt[Lane](ctx, c.Bus, model.EndpointBy(AskLane, c.Principal), &q)
	return err == nil && a.Internal, err
}

// Graph asks for the nodes of a space and their edges.
func (c *Client) Graph(ctx context.Context, q Query) (*Graph, error) {
	return ask[Graph](ctx, c, AskGraph, &q)
}

// Top asks one worker which of its spaces and nodes take most time, at most limit of each (0 for 512). It begins to measure with the first
// question, and ends a minute after the last one.
func (c *Client) Top(ctx context.Context, worker string, limit int) (*Top, error) {
	return persist[Top](ctx, c.Bus, TopEndpoint(worker), topQuery{limit})
}

// ask checks and sends a question about a space. The error is a *model.ServiceError, or model.ErrNoResponder if there is no worker.
func ask[A any](ctx context.Context, c *Client, endpoint string, q *Query) (*A, error) {
	if err := q.check(endpoint); err != nil {
		return nil, err
	}
	return persist[A](ctx, c.Bus, model.EndpointBy(endpoint, c.Principal), q)
}

// persist asks until there is an answer, or an error that a retry would not cure.
func persist[A any](ctx context.Context, bus port.Services, endpoint string, q any) (*A, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime+grace)
	defer cancel()
	for gone := time.Now().Add(grace); ; {
		a, err := askAt[A](ctx, bus, endpoint, q)
		again := errors.Is(err, model.ErrNoResponder) && time.Now().Before(gone) || isCode(err, model.CodeUnavailable)
		if !again || pause.For(ctx, retryPause) != nil {
			return a, err
		}
	}
}

func askAt[A any](ctx context.Context, bus port.Services, endpoint string, q any) (*A, error) {
	data, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	reply, err := bus.Ask(ctx, endpoint, data)
	if err != nil {
		return nil, err
	}
	a := new(A)
	if err := json.Unmarshal(reply, a); err != nil {
		return nil, fmt.Errorf("the answer of %s: %w", endpoint, err)
	}
	return a, nil
}
