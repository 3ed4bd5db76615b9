package worker

import (
	"context"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// follow begins to mirror a document of another space for the core. The watch is
// demand over there: what computes the document runs as long as it is read here.
func (h *host) follow(ref space.Ref) {
	ctx, cancel := context.WithCancel(h.ctx)
	h.mirrors[ref] = cancel
	watch := Watch{
		Bus: h.p.w.bus, Space: ref.Space, Doc: ref.Doc,
		Watcher: h.p.w.cfg.ID + "-" + h.space, Logger: h.p.w.cfg.Logger,
	}
	h.p.tasks.Go(func() { // ends with ctx
		retry(ctx, h.p.w.cfg, "mirror document", func(ctx context.Context) error {
			return watch.Run(ctx, func(v model.Value, _ uint64) {
				h.call(func() {
					if ctx.Err() == nil {
						h.core.Mirror(ref.Space, ref.Doc, v)
					}
				})
			})
		})
	})
}

func (h *host) unfollow(ref space.Ref) {
	h.mirrors[ref]()
	delete(h.mirrors, ref)
}
