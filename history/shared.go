package history

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/settlehq/settle/port"
)

// sharedLogs is a client whose logs are searched for many events at once, as for a tree: a commit that one search has read is not read again by
// another, and neither is the head of a log. What is found is as of the first of these readings, or newer.
type sharedLogs struct {
	port.Client

	mu     sync.Mutex
	logs   map[string]*sharedLog
	memory int // bytes that may still be kept
}

// sharedMemory bounds the commits that are kept of one tree, in bytes. Others are read again.
const sharedMemory = 32 << 20

func shareLogs(bus port.Client) *sharedLogs {
	return &sharedLogs{Client: bus, logs: map[string]*sharedLog{}, memory: sharedMemory}
}

// of returns what is known of the log of a space. It forgets what was read before the store went back.
func (s *sharedLogs) of(space string) *sharedLog {
	s.mu.Lock()
	defer s.mu.Unlock()
	epoch := s.Epoch()
	l := s.logs[space]
	if l == nil || l.epoch != epoch {
		l = &sharedLog{epoch: epoch, turn: make(chan struct{}, 1)}
		s.logs[space] = l
	}
	return l
}

// keeps takes memory for a commit, and reports whether there was enough.
func (s *sharedLogs) keeps(size int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memory -= max(0, min(size, s.memory+1)) // below zero it is full
	return s.memory >= 0
}

// sharedLog is what was read of the log of one space.
type sharedLog struct {
	epoch uint64

	turn    chan struct{} // holds an element while the log is read, since others want the same; it guards what follows
	head    uint64
	commits []known // by sequence
}

// known is a commit, of which is known that the space has none between after and it.
type known struct {
	after uint64
	*logged
}

// begin waits until nothing else reads the log.
func (l *sharedLog) begin(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *sharedLog) end() { <-l.turn }

// headOf returns the head, at least seen unless the store goes back.
func (l *sharedLog) headOf(ctx context.Context, seen uint64, read func() (uint64, error)) (uint64, error) {
	if err := l.begin(ctx); err != nil {
		return 0, err
	}
	defer l.end()
	if l.head > 0 && l.head >= seen {
		return l.head, nil
	}
	head, err := read()
	if err == nil {
		l.head = head
	}
	return head, err
}

// page returns at least one and up to n commits after a sequence, and reads them if none is known.
func (s *sharedLogs) page(ctx context.Context, space string, behind uint64, n int, read func() ([]*logged, error)) ([]*logged, error) {
	l := s.of(space)
	if err := l.begin(ctx); err != nil {
		return nil, err
	}
	defer l.end()
	if have := l.behind(behind, n); len(have) > 0 {
		return have, ctx.Err()
	}
	page, err := read()
	if err != nil {
		return nil, err
	}
	for _, e := range page {
		if s.keeps(e.size) {
			l.keep(known{min(behind, e.prev), e})
		}
		behind = e.seq
	}
	return page, nil
}

// behind returns the commits after a sequence as far as they are known, up to n.
func (l *sharedLog) behind(seq uint64, n int) (list []*logged) {
	at, _ := slices.BinarySearchFunc(l.commits, seq+1, bySeq)
	for ; at < len(l.commits) && len(list) < n && l.commits[at].after <= seq; at++ {
		list = append(list, l.commits[at].logged)
		seq = l.commits[at].seq
	}
	return list
}

// keep adds a commit.
func (l *sharedLog) keep(k known) {
	at, is := slices.BinarySearchFunc(l.commits, k.seq, bySeq)
	if is {
		l.commits[at].after = min(l.commits[at].after, k.after)
		return
	}
	l.commits = slices.Insert(l.commits, at, k)
}

func bySeq(k known, seq uint64) int { return cmp.Compare(k.seq, seq) }
