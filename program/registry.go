package program

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/space"
)

// Compiler compiles a version into a program.
type Compiler func(*Version) (*space.Program, error)

// Config configures a Registry. Compile is required.
type Config struct {
	Compile Compiler
	// OnChange is called after the answers have changed, on the registry's goroutine.
	OnChange func()
	// Logger receives what an operator should know, such as versions that do not compile here.
	// Default: discard.
	Logger *slog.Logger
	// Again is how long to wait before retrying a failed fetch; default 2 s.
	Again time.Duration
}

// Registry answers which program each space runs, according to the rules. It is safe for concurrent
// use.
type Registry struct {
	records Records
	cfg     Config
	answers atomic.Pointer[answers]
	stop    context.CancelFunc
	tasks   sync.WaitGroup

	mu    sync.Mutex
	rules map[string]Rule
	dirty chan struct{} // holds one signal: the rules have changed
	known chan struct{} // closed when all rules stored at the start have arrived
	lost  error         // why the rules are no longer followed

	compiled map[Target]*compiled // owned by the goroutine that resolves
	logged   map[string]string    // the last problem logged about a rule, of the same goroutine
}

// compiled is the result of compiling a version.
type compiled struct {
	program *space.Program
	err     error
	again   bool // a retry may succeed
}

// answers is what the rules resolve to. It is immutable.
type answers struct {
	table    *Table
	programs map[Target]*compiled
	problems []Problem
}

// Problem is a version that a rule names and that cannot run here.
type Problem struct {
	Spaces  string // of the rule
	Target         // the version that it names
	Instead Target // what runs instead; the zero Target for nothing
	Err     error
}

func (t Problem) String() string {
	instead := "nothing runs there"
	if t.Instead != (Target{}) {
		instead = t.Instead.String() + " runs there"
	}
	return fmt.Sprintf("spaces %s should run %s, but %s: %v", t.Spaces, t.Target, instead, t.Err)
}

// Open starts a registry that follows the rules of a deployment. It returns when all stored rules
// have been read and their versions compiled; ctx bounds only that. Close ends it.
func Open(ctx context.Context, records Records, cfg Config) (*Registry, error) {
	if cfg.Compile == nil {
		return nil, errors.New("a registry of programs needs a compiler")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Again <= 0 {
		cfg.Again = 2 * time.Second
	}
	if cfg.OnChange == nil {
		cfg.OnChange = func() {}
	}
	r := &Registry{
		records: records, cfg: cfg, rules: map[string]Rule{}, dirty: make(chan struct{}, 1), known: make(chan struct{}),
		compiled: map[Target]*compiled{}, logged: map[string]string{},
	}
	within, stop := context.WithCancel(context.Background())
	r.stop = stop
	first := make(chan struct{})
	r.tasks.Go(func() { r.follow(within) })         // ends with within, or when the bus is closed
	r.tasks.Go(func() { r.resolve(within, first) }) // ends with within
	select {
	case <-first:
		return r, nil
	case <-ctx.Done():
		r.Close()
		return nil, fmt.Errorf("read which programs the spaces run: %w", errors.Join(ctx.Err(), r.why()))
	}
}

// Close ends the registry. It keeps answering as it did last.
func (r *Registry) Close() {
	r.stop()
	r.tasks.Wait()
}

// Programs returns the program that a space runs: the same pointer while it is to run the same
// version. It is nil if no rule matches the space; the error is why a version cannot run here for
// which there is no replacement.
func (r *Registry) Programs(name string) (*space.Program, error) {
	a := r.answers.Load()
	rule := a.table.Rule(name)
	switch {
	case rule == nil:
		return nil, nil
	case rule.broken != nil:
		return nil, rule.broken
	}
	_, c := a.first(rule.candidates(name))
	return c.program, c.err
}

// Runs returns what a space runs here, and false if it runs nothing.
func (r *Registry) Runs(name string) (Target, bool) {
	a := r.answers.Load()
	rule := a.table.Rule(name)
	if rule == nil || rule.broken != nil {
		return Target{}, false
	}
	t, c := a.first(rule.candidates(name))
	return t, c.err == nil
}

// Table returns the rules as known here.
func (r *Registry) Table() *Table { return r.answers.Load().table }

// Problems returns the versions that should run here but cannot.
func (r *Registry) Problems() []Problem { return slices.Clone(r.answers.Load().problems) }

// first returns the first of several versions that can run here; with the error of the first one if
// none can.
func (a *answers) first(of []Target) (Target, *compiled) {
	for _, t := range of {
		if c := a.programs[t]; c != nil && c.err == nil {
			return t, c
		}
	}
	return of[0], a.programs[of[0]]
}

// candidates returns the versions that a space may run by a rule, in order of preference: the
// present choice, then the previous ones.
func (r *Rule) candidates(space string) []Target {
	all := []Target{r.Choice.Of(space)}
	return r.others(all)
}

func (r *Rule) others(all []Target) []Target {
	add := func(t Target) {
		if t != (Target{}) && !slices.Contains(all, t) {
			all = append(all, t)
		}
	}
	add(r.Target)
	for _, c := range r.History {
		add(c.Target)
	}
	return all
}

// follow keeps the rules up to date, and starts again when following them fails.
func (r *Registry) follow(ctx context.Context) {
	known := sync.OnceFunc(func() { close(r.known) })
	for {
		there := map[string]bool{} // the rules that were stored at the start; nil after that
		learn := func(rec model.Record) {
			if rule := r.learn(rec); there != nil {
				there[rule] = true
			}
		}
		err := r.records.FollowRecords(ctx, ruleKey, learn, func() {
			if there != nil {
				r.keep(there)
				there = nil
			}
			r.signal() // in this order: the first answers must include all of them
			known()
		})
		if ctx.Err() != nil || errors.Is(err, model.ErrStopped) {
			return
		}
		r.mu.Lock()
		r.lost = err
		r.mu.Unlock()
		r.cfg.Logger.Error("the rules cannot be followed at the moment; all spaces keep their programs", "error", err)
		if pause.For(ctx, r.cfg.Again) != nil {
			return
		}
	}
}

func (r *Registry) why() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

// learn applies a rule, and returns its pattern of spaces. A rule that cannot be decoded changes
// nothing if there was another.
func (r *Registry) learn(rec model.Record) (spaces string) {
	rule := decodeRule(rec)
	if rule.broken != nil {
		r.cfg.Logger.Error("a rule cannot be decoded", "record", rec.Key, "error", rule.broken)
		port.PassRecordOver(r.records, &rec, rule.broken.Error())
	}
	if rule.Spaces == "" {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if before, there := r.rules[rule.Spaces]; rule.broken != nil && there && before.Target != (Target{}) {
		return rule.Spaces
	}
	r.rules[rule.Spaces] = rule
	r.signal()
	return rule.Spaces
}

// keep removes the rules that are no longer stored: they were removed while the registry did not
// follow them, or the store has gone back to before they were stored.
func (r *Registry) keep(there map[string]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for spaces := range r.rules { // any order: each on its own
		if !there[spaces] {
			delete(r.rules, spaces)
		}
	}
}

func (r *Registry) signal() {
	select {
	case r.dirty <- struct{}{}:
	default:
	}
}
