package sim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// startAttached attaches an application to a space, beside its owner.
func (w *world) startAttached(p *process, i item) {
	w.beginsWith(p)
	cfg := worker.AttachConfig{
		ID: p.who + "-" + fmt.Sprint(keyed(w.plan.seed, "attached", p.name).below(1000)), Space: i.space, Program: w.newPrograms(p)(i.space, w.editionOf(p)), Events: i.a,
		Limits: ledger.Limits{LaneLimit: w.plan.laneLimit, MaxGroup: w.plan.maxGroup, MaxChain: w.plan.chainLimit()},
		Logger: slog.New(logger{w, p, ""}), Computed: w.asksOwners(live.NewComputed(w.busOf(p))),
	}
	p.space, p.id, p.runLimit = i.space, cfg.ID, attachedLimit
	p.attached = make(chan struct{})
	w.running.Go(func() { // ends when the application is attached, or has been killed
		for p.ctx.Err() == nil {
			a, err := worker.Attach(p.ctx, w.busOf(p), cfg)
			if err == nil {
				w.mu.Lock()
				p.attachment = a
				dead := p.died > 0
				w.mu.Unlock()
				if dead {
					a.Kill()
				}
				close(p.attached)
				w.mindAttachment(p, i)
				return
			}
			w.story.note(p.name, "cannot be attached: %v", err)
			w.pass(p.ctx, 100*time.Millisecond+17)
		}
	})
}

// pass lets time pass for a process.
func (w *world) pass(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// transact makes a transaction of an application, which counts itself and sends to other spaces. Some
// set a timer in their own space, for its later owner.
func (w *world) transact(p *process, o *op) error {
	select {
	case <-p.attached:
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
	w.pass(p.ctx, keyed(w.plan.seed, "transact", o.id).between(1, time.Millisecond)) // others may have waited, too
	return p.attachment.Transact(p.ctx, "app "+o.id, func(tx *space.Tx) error {
		return application(edited{tx, 0}, o.id)
	})
}

// application is the effect of the transaction of that id.
func application(v view, id string) error {
	n, _ := v.Get("app").AsInt()
	v.Set("app", n+1)
	if strings.HasSuffix(id, "9") {
		v.Send("s2", "add", 1_000_000)
		return errors.New("as it should")
	}
	leaveTimer(v, id)
	for _, to := range []string{"s1", "s2"} {
		if to != v.Space() {
			v.Send(to, "add", 30)
		}
	}
	return nil
}

// application is compare for a transaction without an event.
func (f *fold) application(c *model.Commit, tx *model.Tx, id string, after map[string]model.Value) {
	f.w.count("transactions of applications")
	f.noteBeside()
	if at := f.apps[id]; at != 0 {
		f.wrong("once", "transaction %s of an application stands at %d already", id, at)
	}
	f.apps[id] = f.seq
	o := &oracle{f: f, docs: f.docs, after: map[string]model.Value{}}
	when, ok := after["when"]
	if !ok {
		when = f.docs["when"] // two within a millisecond
	}
	o.now, _ = when.AsInt()
	if err := application(o, id); err != nil {
		f.wrong("oracle", "transaction %s of an application has failed, and is here", id)
	}
	f.compareWrites(fmt.Sprintf("%s by %s", tx.By, c.Runtime), tx, o, after)
}
