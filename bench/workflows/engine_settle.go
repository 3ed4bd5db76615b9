package workflows

import (
	"context"
	"fmt"
	"hash/fnv"
	"path/filepath"
	"strings"
	"sync"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bench/harness"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/performer"
	"github.com/settlehq/settle/flow"
	"github.com/settlehq/settle/model"
)

// settleEngine is Settle: runs are state of their space.
type settleEngine struct {
	embedded   bool
	performers bool
}

func (e settleEngine) Name() string {
	switch {
	case e.embedded:
		return "Settle, embedded"
	case e.performers:
		return "Settle, performers"
	}
	return "Settle"
}

func (e settleEngine) About() string {
	switch {
	case e.embedded:
		return "workflows in Starlark on a server in the same process; actions are functions of the worker"
	case e.performers:
		return "the same on servers in processes of their own; actions are done by performers, over NATS"
	}
	return "the same on servers in processes of their own; actions are functions of the worker"
}

// spaces is the number of spaces over which the runs of a measurement are spread. Where counts are compared it is one, which
// the first run creates.
const spaces = 64

func (e settleEngine) program(a *Actions) (*settle.Program, error) {
	p := settle.NewProgram("bench")
	w := flow.New(p)
	for _, one := range programs {
		w.Starlark(one.name+".star", one.source())
	}
	for _, action := range []string{noop, double} {
		if e.performers {
			w.External(action)
			continue
		}
		flow.Perform(w, action, func(_ context.Context, in int64) (int64, error) { return a.do(action, in), nil })
	}
	return p, w.Register()
}

func (e settleEngine) Start(ctx context.Context, at *harness.Site, a *Actions) (System, error) {
	if e.embedded && at.Servers.Size() > 1 {
		return nil, notRun("an embedded server is one server")
	}
	p, err := e.program(a)
	if err != nil {
		return nil, err
	}
	s := &settleSystem{spaces: spaces}
	if at.Quiet {
		s.spaces = 1
	}
	if e.embedded {
		err = s.embed(ctx, at, p)
	} else {
		err = s.connect(ctx, at, e, p)
	}
	if err != nil {
		return nil, err
	}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if e.performers {
		if err := s.perform(ctx, busConfig(at, e), a); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func busConfig(at *harness.Site, e settleEngine) bus.Config {
	if e.performers {
		return bus.Config{URL: at.Servers.URL(), Prefix: "far", Name: "client/bench"}
	}
	return bus.Config{URL: at.Servers.URL(), Prefix: "flow", Name: "client/bench"}
}

// embed starts a deployment with a server in this process.
func (s *settleSystem) embed(ctx context.Context, at *harness.Site, p *settle.Program) error {
	cfg := settle.Config{Programs: settle.Always(p), Server: embedded.Config{StoreDir: filepath.Join(at.Dir, "workflows")}}
	if !at.Always {
		cfg.Server.Fsync = embedded.FsyncInterval
	}
	d, err := settle.Start(ctx, cfg)
	if err != nil {
		return err
	}
	s.client, s.stop = d.Client(), func() error { return d.Stop(context.Background()) }
	return nil
}

// connect starts a worker in this process on the servers of the site.
func (s *settleSystem) connect(ctx context.Context, at *harness.Site, e settleEngine, p *settle.Program) error {
	b, err := bus.Connect(ctx, busConfig(at, e))
	if err != nil {
		return err
	}
	if err := b.Complete(ctx); err != nil {
		return err
	}
	if s.client, err = settle.NewClient(b, settle.ClientConfig{ID: "bench"}); err != nil {
		return err
	}
	stop, err := harness.ServeSettle(ctx, busConfig(at, e), settle.Always(p), at.Quiet)
	s.stop = func() error {
		s.client.Close()
		err := stop()
		b.Close()
		return err
	}
	return err
}

// slots is how many actions performers do at a time.
const slots = 256

// perform starts a performer for each action, on a connection of its own.
func (s *settleSystem) perform(ctx context.Context, cfg bus.Config, a *Actions) (err error) {
	cfg.Name = "performer/bench"
	if s.bus, err = bus.Connect(ctx, cfg); err != nil {
		return err
	}
	for _, action := range []string{noop, double} {
		s.performers.Go(func() {
			err := performer.Serve(s.ctx, s.bus, performer.Config{Action: action, Slots: slots, Eager: true, Do: func(_ context.Context, w *performer.Work, _ func(model.Value)) (model.Value, error) {
				in, is := w.In.Get("args").Index(0).AsInt()
				if !is {
					return model.Value{}, fmt.Errorf("the argument of %s is %s", action, w.In)
				}
				return model.Int(a.do(action, in)), nil
			}})
			if err != nil {
				s.cancel() // runs wait for their actions, and then fail with their patience
			}
		})
	}
	return nil
}

type settleSystem struct {
	client     *settle.Client
	spaces     uint32
	stop       func() error
	bus        *bus.Bus // of the performers
	performers sync.WaitGroup
	ctx        context.Context // of the performers
	cancel     context.CancelFunc
}

// of returns the runs of the space that has a run.
func (s *settleSystem) of(id string) flow.Runs {
	measurement, _, _ := strings.Cut(id, "-")
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // never fails
	return flow.In(s.client.Space(fmt.Sprintf("%s-%d", measurement, h.Sum32()%s.spaces)))
}

func (s *settleSystem) Start(ctx context.Context, program, id string, n int64) error {
	_, err := s.of(id).Start(ctx, program, id, map[string]any{"n": n})
	return err
}

func (s *settleSystem) Result(ctx context.Context, id string) (int64, error) {
	return flow.Result[int64](ctx, s.of(id), id)
}

func (s *settleSystem) Parts() harness.Parts { return harness.Parts{InClient: true} }

func (s *settleSystem) Close() error {
	s.cancel()
	s.performers.Wait()
	if s.bus != nil {
		s.bus.Close()
	}
	return s.stop()
}
