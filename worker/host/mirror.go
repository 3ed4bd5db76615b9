package host

import (
	"context"
	"fmt"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
)

// mirrors are the documents of other spaces that a space reads.
type mirrors struct {
	*loop
	// watcher distinguishes the host's watches from those of any other, and deliver passes values to its loop.
	watcher string
	deliver func(Ref, mirrored)
	all     map[Ref]context.CancelFunc
	// followed is the number of mirrored documents so far.
	followed uint64
}

// follow begins to mirror a document of another space for the core. The watch creates
// demand there: the nodes that compute the document run as long as it is read here.
func (m *mirrors) follow(ref Ref) {
	follow, cancel := context.WithCancel(m.ctx)
	m.all[ref] = cancel
	m.followed++
	if model.IsPattern(ref.Space) {
		m.beside(func() { m.followSpaces(follow, ref) }) // ends with follow
		return
	}
	watch := history.Watch{
		Bus: m.bus, Space: ref.Space, Doc: ref.Doc,
		Watcher: fmt.Sprintf("%s-%d", m.watcher, m.followed), Logger: m.cfg.Logger,
	}
	m.beside(func() { // ends with follow
		of, about := m.space+" "+ref.Space+" "+ref.Doc, []any{"space", m.space, "source", ref.Space, "document", ref.Doc}
		retry(follow, m.cfg, "mirror document", of, about, func(ctx context.Context) error {
			return watch.Changes(ctx, func(c history.Change) { m.deliver(ref, mirrored{follow, c.Value, c.Via, c.Trace}) })
		})
	})
}

func (m *mirrors) unfollow(ref Ref) {
	m.all[ref]()
	delete(m.all, ref)
}

// followSpaces mirrors the list of the spaces that match a pattern.
func (m *mirrors) followSpaces(ctx context.Context, ref Ref) {
	of, about := m.space+" "+ref.Space, []any{"space", m.space, "spaces", ref.Space}
	retry(ctx, m.cfg, "list spaces", of, about, func(ctx context.Context) error {
		return m.cfg.directory.followSpaces(ctx, m.bus, ref.Space, func(v model.Value) { m.deliver(ref, mirrored{ctx: ctx, value: v}) })
	})
}
