package ordered

import (
	"context"
	"errors"

	"github.com/settlehq/settle/access"
	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/worker/host"
)

// Bus is what a server needs from the outside world. *bus.Bus implements it over NATS JetStream, and
// membus.Bus in memory, for tests.
type Bus = port.Bus

// Serve handles the events of the partitions that are assigned to this process, until ctx ends. Then it
// finishes what is in flight, saves, and leaves; other processes take over. Any number of processes may serve
// a deployment, with the same handlers. The caller keeps owning bus; the deployment must have been
// provisioned.
//
// The error reports what is wrong with cfg, or that the deployment cannot be reached. Later faults are logged
// and retried. If no server can be reached for Config.Handover after ctx has ended, the error is
// port.ErrNoServer and names what was not saved: kill bus then, since it will get no more answers.
func Serve(ctx context.Context, bus Bus, cfg Config) error {
	if err := cfg.fill(); err != nil {
		return err
	}
	rules, err := access.Open(ctx, bus, cfg.Logger)
	if err != nil && ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	defer rules.Close()
	s := &server{bus: bus, cfg: &cfg, rules: rules}
	w, err := host.New(bus, s.config())
	if err != nil {
		return err
	}
	if err := w.Start(ctx); err != nil {
		w.Kill()
		_ = w.Stop(context.Background())
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	w.Beside(live.NewServer(bus, s, live.Config{Logger: cfg.Logger, Access: rules}).Run)
	<-ctx.Done()
	err = w.Stop(context.WithoutCancel(ctx))
	if err != nil && !errors.Is(err, port.ErrNoServer) {
		cfg.Logger.Warn("the server has not left in good order", "server", cfg.id, "error", err)
		return nil
	}
	return err
}

// server is one call of Serve.
type server struct {
	bus   Bus
	cfg   *Config
	rules *access.Book
}

// config returns the configuration of the worker that serves the keys.
func (s *server) config() host.Config {
	p := &program{cfg: s.cfg}
	own := host.Config{
		ID: s.cfg.id, Role: model.RoleOrdered, Terms: host.Terms{Process: "server", Space: "key", Code: "a handler"}, WithoutGraph: true, CutsOff: true, Options: s.cfg.options(), Logger: s.cfg.Logger, Access: s.rules,
		Programs: func(string) (host.Program, error) { return p, nil },
	}
	if !s.cfg.Coordinated {
		own.Beside = s.coordinate
	}
	return own
}

// coordinate releases what all keys send, as long as this server has the first partition.
func (s *server) coordinate(ctx context.Context, partition int) {
	if partition != 0 {
		return
	}
	c := coordinator.New(s.bus, coordinator.Config{ID: s.cfg.id + "-coordinator", Logger: s.cfg.Logger})
	c.Start()
	<-ctx.Done()
	c.Stop()
}

// ID and Owner let package live answer requests for documents. Documents are what the log has, so every
// server can answer.
func (s *server) ID() string          { return s.cfg.id }
func (s *server) Owner(string) string { return s.cfg.id }

// Read reads documents from the log. All of them are current: none is derived.
func (s *server) Read(ctx context.Context, q model.ReadRequest) ([]model.DocumentState, error) {
	states := make([]model.DocumentState, len(q.Documents))
	for i, of := range q.Documents {
		if !q.Current {
			continue
		}
		d, err := history.Read(ctx, s.bus, of.Space, of.Document)
		if err != nil {
			return nil, err
		}
		states[i] = model.DocumentState{Value: d.Value, Revision: d.Seq}
	}
	return states, nil
}
