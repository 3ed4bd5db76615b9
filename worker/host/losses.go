package host

import (
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/status"
)

// losses are the refusals of a partition, by space; the key "" means that the whole partition is refused.
type losses struct {
	number int // of the partition
	cfg    *Config
	about  []any // attributes of the log lines

	mu  sync.Mutex
	all map[string]*status.Loss
}

// lossPause is the pause before a loss is checked again.
const lossPause = 2 * time.Second

// note records a loss, and logs it at growing intervals: the attempts to serve continue.
func (l *losses) note(e *model.LossError) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.all[e.Space]
	if r == nil {
		r = &status.Loss{Since: time.Now().UTC()}
		if l.all == nil {
			l.all = map[string]*status.Loss{}
		}
		l.all[e.Space] = r
	}
	r.Kind, r.Partition, r.Space, r.Known, r.Found, r.Reason = e.Kind, l.number, e.Space, e.Known, e.Found, e.Error()
	about := slices.Concat(l.about, []any{"error", r.Reason})
	if e.Space != "" {
		about = append(about, "space", e.Space)
	}
	l.cfg.faults.Error(e.Kind.Refusal(), l.name(e.Space), about...)
}

// name names a loss for the log.
func (l *losses) name(space string) string { return strconv.Itoa(l.number) + " " + space }

// has reports whether a space is refused.
func (l *losses) has(space string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all[space] != nil
}

// refusal returns why a space cannot be read, nil if it is not refused.
func (l *losses) refusal(space string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.all[space]
	if r == nil {
		return nil
	}
	return &model.ServiceError{Code: model.CodeConflict, Text: "space " + space + " is set aside: " + r.Reason}
}

// over records that a space, or the partition, can be served, and reports whether it was refused.
func (l *losses) over(space string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.all[space]
	if r == nil {
		return false
	}
	delete(l.all, space)
	l.cfg.faults.Over(r.Kind.Refusal(), l.name(space))
	l.cfg.Logger.Warn("served again: what it was refused for is decided, or back", slices.Concat(l.about, []any{"space", space, "refused_since", r.Since})...)
	return true
}

// now returns the losses of the partition.
func (l *losses) now() (list []status.Loss) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.all { // any order: sorted by the caller
		list = append(list, *r)
	}
	return list
}
