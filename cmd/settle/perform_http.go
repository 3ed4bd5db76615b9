package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/settlehq/settle/bus/performer"
	"github.com/settlehq/settle/internal/httpcall"
	"github.com/settlehq/settle/model"
)

// calls returns the function that makes the HTTP requests of tasks, to the hosts of --http.
func (c *performCmd) calls() (do func(context.Context, *performer.Work, func(model.Value)) (model.Value, error), end func(), err error) {
	var rules []httpcall.Rule
	for _, text := range c.HTTP {
		r, err := httpcall.ParseRule(text)
		if err != nil {
			return nil, nil, fmt.Errorf("--http %w", err)
		}
		if r.Private() && !c.Private {
			return nil, nil, fmt.Errorf("--http %s: this is no public address, so every request would be refused; add --private if the program may call hosts of your own network", text)
		}
		rules = append(rules, r)
	}
	caller := httpcall.New(rules, c.Private)
	return func(ctx context.Context, w *performer.Work, _ func(model.Value)) (model.Value, error) {
		if limit := c.limit(w); limit > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, limit)
			defer cancel()
		}
		out, err := caller.Do(ctx, w.IdempotencyKey, w.Event, requestIn(w.In))
		if e, is := errors.AsType[*httpcall.Error](err); is {
			err = &performer.Error{Type: e.Type, Message: e.Message, Permanent: e.Permanent()}
		}
		return out, err
	}, caller.Close, nil
}

// requestIn returns the request in the input of a task: the input itself, or for the call of a workflow its argument or its keyword arguments.
func requestIn(in model.Value) model.Value {
	args, kwargs := in.Get("args"), in.Get("kwargs")
	if args.IsAbsent() && kwargs.IsAbsent() {
		return in
	}
	for first := range args.Elements() {
		return first
	}
	return kwargs
}
