package worker

import (
	"context"
	"fmt"

	"github.com/settlehq/settle/lookup"
	"github.com/settlehq/settle/space"
)

// follow begins to mirror a document of another space for the core. The watch creates
// demand there: the nodes that compute the document run as long as it is read here.
func (h *host) follow(ref space.Ref) {
	follow, cancel := context.WithCancel(h.ctx)
	h.mirrors[ref] = cancel
	h.followed++
	watch := Watch{
		Bus: h.env.bus, Space: ref.Space, Doc: ref.Doc,
		Watcher: fmt.Sprintf("%s-%s-%s-%d", h.env.cfg.ID, h.space, h.nonce, h.followed), Logger: h.env.cfg.Logger,
	}
	var last uint64 // a restarted watch may read earlier values
	begun := false
	h.env.tasks.Go(func() { // ends with follow
		of, about := h.space+" "+ref.Space+" "+ref.Doc, []any{"space", h.space, "of", ref.Space, "document", ref.Doc}
		retry(follow, h.env.cfg, "mirror document", of, about, func(ctx context.Context) error {
			return watch.Changes(ctx, func(c lookup.Change) {
				revision, news := c.Since(last)
				if begun && !news {
					return
				}
				begun, last = true, revision
				h.inbox.mirror(ref, mirrored{follow, c.Value})
			})
		})
	})
}

func (h *host) unfollow(ref space.Ref) {
	h.mirrors[ref]()
	delete(h.mirrors, ref)
}
