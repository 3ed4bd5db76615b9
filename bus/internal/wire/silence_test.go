package wire

import (
	"testing"
	"time"
)

// The stream is queried when several attempts have timed out, and none was answered.
func TestSilence_OneAttemptWithoutAnAnswerIsNotEnough(t *testing.T) {
	now := time.Now()
	p := &publisher{timeout: time.Second, pending: map[uint64]*Request{}}
	long := now.Add(-p.silence())
	for name, c := range map[string]struct {
		r    Request
		want bool
	}{
		"one attempt":             {Request{tries: 1, state: onTheWire, silent: long}, false},
		"two attempts":            {Request{tries: 2, state: onTheWire, silent: long}, true},
		"two that are not so old": {Request{tries: 2, state: onTheWire, silent: long.Add(1)}, false},
		"answered meanwhile":      {Request{tries: 2, state: onTheWire}, false},
		"between two attempts":    {Request{tries: 2, state: waitingToRetry, silent: long}, false},
	} {
		p.pending[c.r.token] = &c.r
		if got := p.isSilent(&c.r, now); got != c.want {
			t.Errorf("%s: silent: %v, want %v", name, got, c.want)
		}
	}
	if gone := (&Request{tries: 2, state: onTheWire, silent: long}); p.isSilent(gone, now) {
		t.Error("a request that has ended is silent")
	}
}
