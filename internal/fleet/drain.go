package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/internal/drain"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/worker/roster"
)

// DrainBus is the bus that draining uses.
type DrainBus interface {
	Bus
	port.Records
}

// Refusal is a reason why a worker is not asked to stop.
type Refusal struct{ Text string }

func (r *Refusal) Error() string { return r.Text }

func refuse(format string, args ...any) error { return &Refusal{fmt.Sprintf(format, args...)} }

// MayDrain returns the worker of an id, and a Refusal if it cannot be drained: there is none, it does not answer, or no other worker could serve
// its partitions, unless force is set.
func (f *Fleet) MayDrain(id string, force bool) (*Member, error) {
	at := slices.IndexFunc(f.Workers, func(m Member) bool { return m.ID == id })
	if at < 0 {
		if slices.ContainsFunc(f.Coordinators, func(m Member) bool { return m.ID == id }) {
			return nil, refuse("%s is a coordinator, which has no partitions: end its process", id)
		}
		return nil, refuse("there is no worker %q; there are: %s", id, strings.Join(idsOf(f.Workers), ", "))
	}
	m := &f.Workers[at]
	switch {
	case m.State == Silent || m.State == Gone:
		return nil, refuse("worker %s is %s: it does not answer, and the others have its partitions or are about to take them; end its process if there is one", id, m.State)
	case m.announced.Role != "":
		return nil, refuse("%s is a process of package ordered, which stops when its program ends", id)
	case m.State == Leaving || force:
		return m, nil
	}
	for i := range f.Workers {
		if o := &f.Workers[i]; o.ID != id && o.State == Here && o.announced.Role == "" {
			return m, nil
		}
	}
	return nil, refuse("worker %s is the only one: without it, no event is handled; start another one first, or force it", id)
}

func idsOf(members []Member) []string {
	ids := make([]string, len(members))
	for i := range members {
		ids[i] = members[i].ID
	}
	return ids
}

// Drain asks a worker to stop, as SIGTERM does. by is the operator, as the command knows it. The worker that is returned is as it was before. The
// error is a Refusal, or model.ErrForbidden.
func Drain(ctx context.Context, b DrainBus, id, by string, force bool) (*Member, error) {
	if err := model.CheckName("worker", id); err != nil {
		return nil, &Refusal{err.Error()}
	}
	f, err := Look(ctx, b)
	if err != nil {
		return nil, err
	}
	m, err := f.MayDrain(id, force)
	if err != nil || m.State == Leaving {
		return m, err
	}
	return m, drain.Ask(ctx, b, id, drain.Request{Life: m.announced.Life, By: by, At: time.Now().UTC()})
}

// lookAgain is how long to wait before the members are read again.
const lookAgain = 200 * time.Millisecond

// AwaitDrained waits until a worker has left, or is served by another process under its id, and its partitions have owners that answer, if
// there is any other worker. It returns these workers.
func AwaitDrained(ctx context.Context, b Bus, m *Member) (heirs []string, err error) {
	for {
		left, err := hasLeft(ctx, b, &m.announced)
		if left {
			var f *Fleet
			if f, err = Look(ctx, b); err == nil {
				if heirs, all := f.servers(m.Holds); all || len(f.Staying()) == 0 {
					return heirs, nil
				}
			}
		}
		if pause.For(ctx, lookAgain) == nil {
			continue
		}
		if err != nil && !errors.Is(err, ctx.Err()) {
			return nil, err
		}
		if !left {
			return nil, fmt.Errorf("worker %s was asked to stop and has not left: it waits for code that does not return, or is of a version that cannot be asked; settle fleet shows it", m.ID)
		}
		return nil, fmt.Errorf("worker %s has left, and not all of its %s are served: settle fleet", m.ID, display.Count(len(m.Holds), "partition"))
	}
}

// hasLeft reports whether a member, as it was announced, has left.
func hasLeft(ctx context.Context, b Bus, was *model.Member) (bool, error) {
	all, err := announcements(ctx, b)
	if err != nil {
		return false, err
	}
	for i := range all {
		if m := &all[i]; m.Key() == was.Key() && m.Life == was.Life {
			return roster.HasLeft(m), nil
		}
	}
	return true, nil
}

// servers returns the workers that serve these partitions, and whether each is served.
func (f *Fleet) servers(partitions []int) (ids []string, all bool) {
	all = true
	for _, p := range partitions {
		served := p < len(f.Partitions) && len(f.Partitions[p].Served) > 0
		if all = all && served; served {
			ids = append(ids, f.Partitions[p].Served...)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), all
}
