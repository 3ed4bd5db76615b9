package worker

import (
	"context"
	"fmt"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// follow begins to mirror a document of another space for the core. The watch creates
// demand there: the nodes that compute the document run as long as it is read here.
func (h *host) follow(ref space.Ref) {
	follow, cancel := context.WithCancel(h.ctx)
	h.mirrors[ref] = cancel
	h.followed++
	watch := history.Watch{
		Bus: h.env.bus, Space: ref.Space, Doc: ref.Doc,
		Watcher: fmt.Sprintf("%s-%s-%s-%d", h.env.cfg.ID, h.space, h.nonce, h.followed), Logger: h.env.cfg.Logger,
	}
	h.env.tasks.Go(func() { // ends with follow
		of, about := h.space+" "+ref.Space+" "+ref.Doc, []any{"space", h.space, "of", ref.Space, "document", ref.Doc}
		retry(follow, h.env.cfg, "mirror document", of, about, func(ctx context.Context) error {
			return watch.Changes(ctx, func(c history.Change) { h.mirror(ref, mirrored{follow, c.Value}) })
		})
	})
}

// mirrored is the value of a foreign document, valid until ctx ends.
type mirrored struct {
	ctx   context.Context
	value model.Value
}

// mirror passes the value of a foreign document to the loop, unless the mirror has
// ended: a new one may have begun, and have delivered its value.
func (h *host) mirror(ref space.Ref, m mirrored) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m.ctx.Err() != nil {
		return
	}
	if h.inbox.mirrored == nil {
		h.inbox.mirrored = map[space.Ref]mirrored{}
	}
	h.inbox.mirrored[ref] = m
	h.rouse()
}

func (h *host) unfollow(ref space.Ref) {
	h.mirrors[ref]()
	delete(h.mirrors, ref)
}
