package host

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/settlehq/settle/model"
)

// lifetime is the time from the start of a host to its end, and why it has ended.
type lifetime struct {
	started time.Time
	ctx     context.Context
	cancel  context.CancelFunc
	entered chan struct{} // of an attachment: closed when the host has joined its space
	done    chan struct{} // closed when the loop has returned, or was given up
	ending  sync.Once
	gone    func()      // called when the host is given up, instead of when it ends
	loaded  atomic.Bool // the space has been loaded
	// unborn reports that the space has no log. It is set with the partition locked, and not reset.
	unborn atomic.Bool
	// deposed reports that the host has ended because another runtime took the space over, and handled that a commit of
	// it has ended an event.
	deposed, handled atomic.Bool

	// toDrain reports that the host will be drained, perhaps after its neighbours.
	toDrain atomic.Bool
	// draining reports that the host finishes running work, and then ends. It belongs to the loop.
	draining bool

	mu sync.Mutex
	// failed is why the host has ended, if it failed; unsaved is why the last save of a draining host failed.
	failed, unsaved error
}

func newLifetime(ctx context.Context) *lifetime {
	l := &lifetime{started: time.Now(), done: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(ctx)
	return l
}

// now is the core's clock: monotonic, from the host's start.
func (l *lifetime) now() time.Duration { return time.Since(l.started) }

// end records that the host has ended.
func (l *lifetime) end() {
	l.ending.Do(func() {
		l.cancel()
		close(l.done)
	})
}

// endWith ends the host because of an error. The first error counts, and none that comes after the end.
func (l *lifetime) endWith(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed == nil && l.ctx.Err() == nil {
		l.failed = err
	}
	l.cancel()
}

// failWith records why the host fails, whatever was recorded before.
func (l *lifetime) failWith(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = err
}

// failure returns why the host failed, nil if it has not.
func (l *lifetime) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// whyEnded returns why the host has ended.
func (l *lifetime) whyEnded() error {
	if err := l.failure(); err != nil {
		return err
	}
	return model.ErrStopped
}

// noteUnsaved records why the space could not be saved at the end.
func (l *lifetime) noteUnsaved(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unsaved = err
}

// notSaved returns why the space could not be saved at the end, nil if it was.
func (l *lifetime) notSaved() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unsaved
}
