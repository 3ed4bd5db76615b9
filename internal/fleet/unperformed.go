package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/status"
)

// Unperformed is an action whose tasks no performer takes, as the workers report it: one entry for each action and queue.
type Unperformed struct {
	status.Unperformed
	// Workers are those that report it. Since is the earliest of them, Last and Claimed the latest.
	Workers []string
}

// Unperformed returns the actions whose tasks no performer takes, those that have waited for longest first.
func (f *Fleet) Unperformed() []Unperformed { return unperformed(f.Workers) }

func unperformed(workers []Member) (list []Unperformed) {
	for i := range workers {
		g := workers[i].Figures
		if g == nil {
			continue
		}
		for k := range g.Unperformed {
			u := &g.Unperformed[k]
			at := slices.IndexFunc(list, func(o Unperformed) bool { return o.Action == u.Action && o.Queue == u.Queue })
			if at < 0 {
				list = append(list, Unperformed{*u, []string{workers[i].ID}})
				continue
			}
			o := &list[at]
			o.Workers = append(o.Workers, workers[i].ID)
			if u.Since.Before(o.Since) {
				o.Since = u.Since
			}
			if u.Last.After(o.Last) {
				o.Last, o.Silent = u.Last, u.Silent
			}
			if u.Claimed.After(o.Claimed) {
				o.Claimed = u.Claimed
			}
		}
	}
	slices.SortFunc(list, func(a, b Unperformed) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Action, b.Action), cmp.Compare(a.Queue, b.Queue))
	})
	return list
}

// Text says what is known, in a clause: since when no task was taken, and when the last one was taken, as the workers know it.
func (u *Unperformed) Text(now time.Time) string {
	text := fmt.Sprintf("%s; tasks wait for %s", u.Reason(), display.Duration(now.Sub(u.Since).Round(time.Second)))
	if u.Claimed.IsZero() {
		has := "has"
		if len(u.Workers) > 1 {
			has = "have"
		}
		return fmt.Sprintf("%s, and none was taken since %s %s started", text, strings.Join(u.Workers, " and "), has)
	}
	return text + ", and the last one was taken " + display.Duration(now.Sub(u.Claimed).Round(time.Second)) + " ago"
}

// UnperformedFor asks the workers that hold a space which actions no performer takes the tasks of.
func UnperformedFor(ctx context.Context, b Bus, space string) ([]Unperformed, error) {
	said, err := announcements(ctx, b)
	if err != nil {
		return nil, err
	}
	p := model.PartitionOf(space, b.Partitions())
	var asked []Member
	for i := range said {
		if m := &said[i]; (m.Role == "" || m.Role == model.RoleOrdered) && slices.Contains(m.Holds, p) {
			asked = append(asked, Member{ID: m.ID, announced: *m})
		}
	}
	var asking sync.WaitGroup
	for i := range asked {
		asking.Go(func() { asked[i].ask(ctx, b) }) // ends within the patience
	}
	asking.Wait()
	return unperformed(asked), nil
}
