package dev

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// KillEndpoint is where a dev server kills one of its workers on request.
const KillEndpoint = "dev-kill"

// KillRequest names the worker to kill: by its id, or as the owner of a space.
type KillRequest struct {
	Worker string `json:"worker,omitzero"`
	Space  string `json:"space,omitzero"`
}

// Killed is the answer.
type Killed struct {
	Worker string `json:"worker"`
	// Others are the workers that are left, and Back is after how long the worker is started again, in milliseconds.
	Others []string `json:"others"`
	Back   int64    `json:"back_ms"`
}

// restartAfter is the default of Config.RestartAfter: the other one has taken its spaces over by then.
const restartAfter = 3 * time.Second

// Kill asks a dev server to kill a worker.
func Kill(ctx context.Context, b port.Services, q KillRequest) (*Killed, error) {
	data, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	reply, err := b.Ask(ctx, KillEndpoint, data)
	if err != nil {
		return nil, err
	}
	k := &Killed{}
	if err := json.Unmarshal(reply, k); err != nil {
		return nil, fmt.Errorf("the answer of the dev server: %w", err)
	}
	return k, nil
}

// offerKill takes requests to kill workers, until ctx ends.
func (d *dev) offerKill(ctx context.Context) error {
	return d.bus.Serve(ctx, model.Service{
		Name: "settle-dev", Description: "For `settle chaos kill`: kills a worker of this dev server.",
		Endpoints: []model.Endpoint{{
			Name: KillEndpoint, Description: `Kills a worker: {"worker"} or {"space"}, whose owner is killed.`,
			Open: func(request []byte, to model.Outlet) {
				d.chaos.Go(func() { // ends with the answer, or with ctx
					defer to.Close()
					_ = to.Send(d.answerKill(ctx, request)) // best effort: the requester has a timeout
				})
			},
		}},
	})
}

func (d *dev) answerKill(ctx context.Context, request []byte) (p model.Part) {
	var q KillRequest
	if err := json.Unmarshal(request, &q); err != nil {
		p.Err = &model.ServiceError{Code: model.CodeBadRequest, Text: "the request is not JSON: " + err.Error()}
		return p
	}
	k, err := d.kill(ctx, q)
	if err == nil {
		p.Data, err = json.Marshal(k)
	}
	if err != nil {
		p.Err = &model.ServiceError{Code: model.CodeBadRequest, Text: err.Error()}
	}
	return p
}

// kill stops a worker as SIGKILL would stop its process, and has it started again later.
func (d *dev) kill(ctx context.Context, q KillRequest) (*Killed, error) {
	id := q.Worker
	if id == "" {
		if err := model.CheckName("space", q.Space); err != nil {
			return nil, err
		}
		f, err := fleet.Look(ctx, d.bus)
		if err != nil {
			return nil, err
		}
		id = f.Partitions[model.PartitionOf(q.Space, len(f.Partitions))].Owner
	}
	if d.golang != nil {
		return d.golang.kill(ctx, id)
	}
	there := d.run.Workers()
	switch {
	case len(there) < workers:
		return nil, fmt.Errorf("a worker that was killed is not back yet; only %v runs", there)
	case !slices.Contains(there, id) || !d.run.KillWorker(id):
		return nil, fmt.Errorf("there is no worker %q; there are %v", id, there)
	}
	fmt.Fprintf(d.cfg.Out, "%s  worker %s was killed (settle chaos kill)\n", now(), id)
	d.chaos.Go(func() { // ends soon, or with ctx
		if pause.For(ctx, d.cfg.RestartAfter) != nil {
			return
		}
		if err := d.run.RestartWorker(ctx, id); err != nil && ctx.Err() == nil {
			fmt.Fprintf(d.cfg.Out, "%s  worker %s could not be started again: %v\n", now(), id, err)
			return
		}
		fmt.Fprintf(d.cfg.Out, "%s  worker %s is back\n", now(), id)
	})
	return &Killed{Worker: id, Others: d.run.Workers(), Back: d.cfg.RestartAfter.Milliseconds()}, nil
}
