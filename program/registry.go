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
	"github.com/settlehq/settle/space"
)

// Compiler makes a program of a version's text.
type Compiler func(*Version) (*space.Program, error)

// Config says how a Registry works. Compile is required.
type Config struct {
	Compile Compiler
	// OnChange is called after the answers have changed, on the registry's goroutine.
	OnChange func()
	// Logger gets what an operator should know, such as versions that do not compile here.
	// Default: discard.
	Logger *slog.Logger
	// Again is how long to wait before fetching what could not be fetched once more; default
	// 2 s.
	Again time.Duration
}

// Registry knows what each space runs, as the rules have it. It may be used from many
// goroutines.
type Registry struct {
	records Records
	cfg     Config
	answers atomic.Pointer[answers]
	stop    context.CancelFunc
	tasks   sync.WaitGroup

	mu    sync.Mutex
	rules map[string]Rule
	dirty chan struct{} // holds one signal: the rules have changed
	known chan struct{} // closed when all rules that were there have arrived
	lost  error         // why the rules are not followed any more

	compiled map[Target]*compiled // of the goroutine that resolves
	told     map[string]string    // what was logged about a rule, of the same
}

// compiled is what has become of a version here.
type compiled struct {
	program *space.Program
	err     error
	again   bool // it may be another time
}

// answers is what follows from the rules; it does not change.
type answers struct {
	table    *Table
	programs map[Target]*compiled
	troubles []Trouble
}

// Trouble is a version that a rule names and that cannot run here.
type Trouble struct {
	Spaces  string // the rule's
	Target         // what it names
	Instead Target // what runs in its place, the zero Target if nothing does
	Err     error
}

func (t Trouble) String() string {
	instead := "nothing runs there"
	if t.Instead != (Target{}) {
		instead = t.Instead.String() + " runs there"
	}
	return fmt.Sprintf("spaces %s are to run %s, and %s: %v", t.Spaces, t.Target, instead, t.Err)
}

// Open follows the rules of a deployment. It returns when it knows those that there are, and
// has compiled what they name; ctx bounds that only. Close ends it.
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
		compiled: map[Target]*compiled{}, told: map[string]string{},
	}
	within, stop := context.WithCancel(context.Background())
	r.stop = stop
	first := make(chan struct{})
	r.tasks.Go(func() { r.follow(within) })         // ends with within, or when the bus is of no more use
	r.tasks.Go(func() { r.resolve(within, first) }) // ends with within
	select {
	case <-first:
		return r, nil
	case <-ctx.Done():
		r.Close()
		return nil, fmt.Errorf("learn which programs the spaces run: %w", errors.Join(ctx.Err(), r.why()))
	}
}

// Close ends the registry. It goes on answering as it did last.
func (r *Registry) Close() {
	r.stop()
	r.tasks.Wait()
}

// Programs is the program that a space runs: the same pointer for as long as it is to run
// the same version. It is nil if no rule is about the space; the error says why a version cannot run
// here for which there is no other.
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

// Runs is what a space runs here, and false if it runs nothing.
func (r *Registry) Runs(name string) (Target, bool) {
	a := r.answers.Load()
	rule := a.table.Rule(name)
	if rule == nil || rule.broken != nil {
		return Target{}, false
	}
	t, c := a.first(rule.candidates(name))
	return t, c.err == nil
}

// Table is the rules as they are known here.
func (r *Registry) Table() *Table { return r.answers.Load().table }

// Troubles are the versions that are to run and cannot, here.
func (r *Registry) Troubles() []Trouble { return slices.Clone(r.answers.Load().troubles) }

// first is the first of several versions that can run here; the error of the very first if
// none can.
func (a *answers) first(of []Target) (Target, *compiled) {
	for _, t := range of {
		if c := a.programs[t]; c != nil && c.err == nil {
			return t, c
		}
	}
	return of[0], a.programs[of[0]]
}

// candidates are what a space may run by a rule, the best first: what the rule says, and then
// what it has said before.
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

// follow keeps the rules up to date, again and again if it must.
func (r *Registry) follow(ctx context.Context) {
	known := sync.OnceFunc(func() { close(r.known) })
	for {
		there := map[string]bool{} // the rules that were delivered first; nil after that
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
			r.signal() // in this order: the first answers are to them all
			known()
		})
		if ctx.Err() != nil || errors.Is(err, model.ErrStopped) {
			return
		}
		r.mu.Lock()
		r.lost = err
		r.mu.Unlock()
		r.cfg.Logger.Error("which space runs which program cannot be followed just now; all go on with what they have", "error", err)
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

// learn takes a rule in, and returns what spaces it is for. One that nobody can read changes
// nothing if there was another.
func (r *Registry) learn(rec model.Record) (spaces string) {
	rule := decodeRule(rec)
	if rule.broken != nil {
		r.cfg.Logger.Error("a rule about programs cannot be read", "record", rec.Key, "error", rule.broken)
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

// keep forgets the rules that are not there any more: they were removed while nobody listened,
// or the store has gone back to before they were.
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
