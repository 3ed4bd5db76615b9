package program

import (
	"context"
	"errors"
	"maps"
	"time"
)

// resolve computes the answers whenever the rules have changed, or when a failed fetch may succeed.
// It closes first with the first answers.
func (r *Registry) resolve(ctx context.Context, first chan struct{}) {
	select {
	case <-r.known:
	case <-ctx.Done():
		return
	}
	again := time.NewTimer(r.cfg.Again)
	defer again.Stop()
	again.Stop() // nothing is missing yet
	for {
		select {
		case <-r.dirty:
		case <-again.C:
		case <-ctx.Done():
			return
		}
		incomplete := r.answer(ctx)
		if ctx.Err() != nil {
			return
		}
		if first != nil {
			close(first)
			first = nil
		} else {
			r.cfg.OnChange()
		}
		again.Stop()
		if incomplete {
			again.Reset(r.cfg.Again)
		}
	}
}

// answer computes the answers to the present rules, and reports whether a version that they need
// could not be fetched.
func (r *Registry) answer(ctx context.Context) (incomplete bool) {
	r.mu.Lock()
	table := newTable(r.rules)
	r.mu.Unlock()
	a := &answers{table: table, programs: map[Target]*compiled{}}
	for _, rule := range table.All() {
		if rule.broken == nil {
			incomplete = r.prepare(ctx, a, rule) || incomplete
		}
	}
	if ctx.Err() != nil {
		return false
	}
	r.retain(table)
	r.answers.Store(a)
	return incomplete
}

// prepare compiles each version that a rule names and, in place of one that cannot be compiled, the
// next one in its history.
func (r *Registry) prepare(ctx context.Context, a *answers, rule *Rule) (incomplete bool) {
	named := []Target{rule.Target}
	if rule.Canary != nil {
		named = append(named, Target{rule.Program, rule.Canary.Version})
	}
	for _, want := range named {
		var why error
		for _, t := range rule.others([]Target{want}) {
			c := r.compile(ctx, t)
			a.programs[t] = c
			incomplete = incomplete || c.again
			if c.err == nil {
				r.report(a, Problem{rule.Spaces, want, t, why})
				why = nil
				break
			}
			if why == nil {
				why = c.err
			}
		}
		if why != nil {
			r.report(a, Problem{rule.Spaces, want, Target{}, why})
		}
	}
	return incomplete
}

// compile returns the result of compiling a version. Only a failed fetch is retried.
func (r *Registry) compile(ctx context.Context, t Target) *compiled {
	if c := r.compiled[t]; c != nil && !c.again {
		return c
	}
	c := r.compileUncached(ctx, t)
	r.compiled[t] = c
	return c
}

func (r *Registry) compileUncached(ctx context.Context, t Target) *compiled {
	v, err := Load(ctx, r.records, t)
	if err != nil {
		return &compiled{err: err, again: true} // the rule may have arrived before its version
	}
	if err := v.Check(); err != nil {
		return &compiled{err: err}
	}
	p, err := r.cfg.Compile(&v)
	if err == nil && p == nil {
		err = errors.New("the compiler has returned no program")
	}
	return &compiled{program: p, err: err}
}

// retain drops compiled versions that no rule refers to.
func (r *Registry) retain(table *Table) {
	needed := map[Target]bool{}
	for _, rule := range table.All() {
		if rule.Canary != nil {
			needed[Target{rule.Program, rule.Canary.Version}] = true
		}
		for _, t := range rule.others(nil) {
			needed[t] = true
		}
		for _, c := range rule.History { // a canary that was rolled back may be tried again
			if c.Canary != nil {
				needed[Target{c.Program, c.Canary.Version}] = true
			}
		}
	}
	maps.DeleteFunc(r.compiled, func(t Target, _ *compiled) bool { return !needed[t] })
}

// report records a version that cannot run here, and logs it once.
func (r *Registry) report(a *answers, t Problem) {
	key := t.Spaces + " " + t.Target.String()
	if t.Err == nil {
		delete(r.logged, key)
		return
	}
	a.problems = append(a.problems, t)
	if text := t.String(); r.logged[key] != text {
		r.logged[key] = text
		r.cfg.Logger.Error("a version of a program that is deployed cannot run here",
			"spaces", t.Spaces, "program", t.Program, "version", t.Version, "instead", t.Instead.String(), "error", t.Err)
	}
}
