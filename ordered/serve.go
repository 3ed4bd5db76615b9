package ordered

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/internal/runlimit"
	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// Bus is what is needed of the outside world. *bus.Bus satisfies it over NATS JetStream, and
// membus.Bus in memory, for tests.
type Bus = port.Bus

// server is one call of Serve.
type server struct {
	bus Bus
	cfg Config

	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	peers      peers
	mu         sync.Mutex
	partitions map[int]*partition // which the goroutine of Serve alone changes, with mu
	counts     counts
	awake      atomic.Int64
	loads      chan struct{}
	abandoned  runlimit.Abandoned
}

// Serve handles events until ctx ends: those of the partitions that fall to this process. Then
// it finishes what is under way, saves, and leaves; the others take over. Any number of
// processes may serve a deployment, with the same handlers. bus stays the caller's; the
// deployment must have been provisioned.
//
// The error says what is wrong with cfg, or that the deployment cannot be reached. While it
// serves, what goes wrong is logged and tried again. If no server can be reached for Config.Handover after
// ctx has ended, the error is port.ErrNoServer and says what was not saved: bus is best killed then, as
// nothing will be answered any more.
func Serve(ctx context.Context, bus Bus, cfg Config) error {
	if err := cfg.fill(bus.Horizon()); err != nil {
		return err
	}
	if err := cfg.forLedgers(bus.MaxPayload()); err != nil {
		return fmt.Errorf("server %s: %w", cfg.Name, err)
	}
	s := &server{bus: bus, cfg: cfg, partitions: map[int]*partition{}, loads: make(chan struct{}, loads)}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	defer s.cancel()
	s.peers.init(s)
	if err := s.peers.enter(ctx); err != nil {
		s.cancel()
		s.tasks.Wait()
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	answering, last := make(chan struct{}), live.NewServer(bus, answers{s}, live.Config{Logger: cfg.Logger})
	s.tasks.Go(func() { last.Run(s.ctx, answering) }) // ends with answering
	s.offerFigures()
	s.run(ctx)
	close(answering)
	return s.leave()
}

// run keeps the heartbeat and the division of the partitions going until ctx ends.
func (s *server) run(ctx context.Context) {
	beat := time.NewTicker(s.cfg.Heartbeat)
	defer beat.Stop()
	s.place()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.peers.moved:
		case <-beat.C:
			s.peers.announce(ctx)
			s.peers.lookAround(ctx)
		}
		s.place()
	}
}

// place begins to serve what falls to this server, and gives up what does not. A partition that
// comes back is served again when it has been given up completely.
func (s *server) place() {
	now := time.Now()
	mine := s.peers.Share(s.bus.Partitions(), now)
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, p := range s.partitions { // any order: each on its own
		switch {
		case p.gone():
			delete(s.partitions, n)
			s.peers.LetGo(n)
		case !slices.Contains(mine, n) && !p.draining():
			s.giveUp(p)
		}
	}
	for _, n := range mine {
		if s.partitions[n] == nil {
			s.partitions[n] = startPartition(s, n)
			s.peers.Hold(n, now)
		}
	}
}

func (s *server) giveUp(p *partition) {
	if !p.give() {
		return
	}
	s.tasks.Go(func() { // ends with the time for it
		ctx, cancel := context.WithTimeout(s.ctx, s.cfg.Handover)
		defer cancel()
		p.stop(ctx)
	})
}

// leave gives up all partitions, and says so. It ends without a server, too.
func (s *server) leave() error {
	ctx, end := port.WhileReachable(s.ctx, s.bus, s.cfg.Handover)
	defer end()
	for _, p := range s.partitions { // any order: all at once
		if !p.draining() {
			s.giveUp(p)
		}
	}
	for n, p := range s.partitions { // any order: all are waited for
		<-p.over
		s.peers.LetGo(n)
	}
	s.peers.Leave()
	s.peers.announce(ctx)
	var away error
	if errors.Is(context.Cause(ctx), port.ErrNoServer) {
		away = s.awayError()
	}
	s.mu.Lock()
	s.partitions = nil
	s.mu.Unlock()
	s.cancel()
	last, cancel := context.WithTimeout(context.Background(), s.cfg.Handover)
	defer cancel()
	wait(last, &s.tasks)
	return away
}

// awayError says what a server has not done that had to leave without a NATS server.
func (s *server) awayError() error {
	keys, of := 0, []string{}
	for _, n := range slices.Sorted(maps.Keys(s.partitions)) {
		if undone := s.partitions[n].undone; undone > 0 {
			keys += undone
			of = append(of, strconv.Itoa(n))
		}
	}
	undone := "every key was saved before"
	switch {
	case keys == 1:
		undone = "1 key was not saved, of partition " + of[0]
	case keys > 1:
		undone = fmt.Sprintf("%d keys were not saved, of partitions %s", keys, strings.Join(of, ", "))
	}
	return fmt.Errorf("server %s has left without announcing it: %w for %v; %s; nothing that was acknowledged is lost, the next owner goes on from the log",
		s.cfg.id, port.ErrNoServer, s.cfg.Handover, undone)
}

// loading waits for its turn to load a key.
func (s *server) loading(ctx context.Context) (release func(), err error) {
	select {
	case s.loads <- struct{}{}:
		return func() { <-s.loads }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// makeRoom waits for a moment while far too many keys are in memory, for the idle ones to leave.
func (s *server) makeRoom(ctx context.Context) {
	for try := 0; try < 10 && s.awake.Load() > 2*int64(s.cfg.MaxAwake); try++ {
		_ = pause.For(ctx, 10*time.Millisecond)
	}
}

// answers lets package live answer what documents are: they are what the log says, so every
// server knows.
type answers struct{ s *server }

func (a answers) ID() string          { return a.s.cfg.id }
func (a answers) Owner(string) string { return a.s.cfg.id }

// Read reads documents from the log. All of them are up to date: nothing is derived.
func (a answers) Read(ctx context.Context, q model.ReadRequest) ([]model.DocumentState, error) {
	states := make([]model.DocumentState, len(q.Documents))
	for i, of := range q.Documents {
		if !q.Current {
			continue
		}
		d, err := history.Read(ctx, a.s.bus, of.Space, of.Document)
		if err != nil {
			return nil, err
		}
		states[i] = model.DocumentState{Value: d.Value, Revision: d.Seq}
	}
	return states, nil
}
