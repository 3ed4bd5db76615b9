package wire

import (
	"cmp"
	"slices"
	"sync"

	"github.com/settlehq/settle/model"
)

// passes counts the messages that were passed over, by stream.
type passes struct {
	mu       sync.Mutex
	byStream map[string]model.PassedOver
}

// longestReason is how much of a subject and of a reason is kept, in bytes.
const longestReason = 200

// PassOver notes that a message of a stream cannot be read, and logs it at growing intervals. A consumer may deliver it again after
// an interruption: then it counts once.
func (l *Link) PassOver(stream string, seq uint64, subject, reason string) {
	l.Faults.Warn("a message is passed over for good: it cannot be read", stream, "stream", stream, "sequence", seq, "subject", shortened(subject), "reason", reason)
	l.passes.mu.Lock()
	defer l.passes.mu.Unlock()
	if l.passes.byStream == nil {
		l.passes.byStream = map[string]model.PassedOver{}
	}
	p := l.passes.byStream[stream]
	if seq <= p.Seq {
		return
	}
	l.passes.byStream[stream] = model.PassedOver{Stream: stream, Seq: seq, Subject: shortened(subject), Reason: shortened(reason), Count: p.Count + 1}
}

func shortened(s string) string {
	if len(s) > longestReason {
		return s[:longestReason] + "..."
	}
	return s
}

// PassedOver returns what was passed over, by stream.
func (l *Link) PassedOver() []model.PassedOver {
	l.passes.mu.Lock()
	defer l.passes.mu.Unlock()
	all := make([]model.PassedOver, 0, len(l.passes.byStream))
	for _, p := range l.passes.byStream { // any order: sorted below
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b model.PassedOver) int { return cmp.Compare(a.Stream, b.Stream) })
	return all
}
