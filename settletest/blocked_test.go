package settletest_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/settletest"
)

var result = settle.NewDerived[int64]("result")

// blocking is a program whose computation calls do.
func blocking(do func()) *settle.Program {
	p := settle.NewProgram("blocking")
	result.Compute(p, func(v *settle.View) (int64, error) {
		do()
		return 1, nil
	})
	return p
}

func TestABlockedComputationIsReportedWithItsState(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	release, full := make(chan struct{}), make(chan int)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { <-release }))
	var gone atomic.Bool
	var mu sync.Mutex
	mu.Lock()
	t.Cleanup(func() { // releases all of them
		cancel()
		close(release)
		gone.Store(true)
		select {
		case <-full:
		default:
		}
		mu.Unlock()
		server.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	cases := map[string]struct {
		do    func()
		wants []string
	}{
		"sleep":   {func() { nap(ctx) }, []string{"[sleep]", "time.Sleep", "SendAfter"}},
		"receive": {func() { <-release }, []string{"[chan receive]", "goroutines"}},
		"send": {func() {
			if !gone.Load() {
				full <- 1
			}
		}, []string{"[chan send]"}},
		"select": {func() {
			select {
			case <-release:
			case <-time.After(time.Hour):
			}
		}, []string{"[select]"}},
		"wait group": {func() { var g sync.WaitGroup; g.Go(func() { <-release }); g.Wait() }, []string{"[sync.WaitGroup.Wait]"}},
		"lock":       {func() { mu.Lock(); mu.Unlock() }, []string{"[sync.Mutex.Lock]", "sync.(*Mutex).Lock"}}, //nolint:staticcheck // to wait is the point
		"http":       {func() { get(server.URL) }, []string{"net/http.(*Client).Do", "an action"}},
		"process":    {func() { _ = exec.CommandContext(ctx, "sleep", "3600").Run() }, []string{"os/exec.(*Cmd).Run"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := failing(t, func(tb *recorder) {
				s := settletest.New(tb, blocking(c.do)).Space("home")
				result.Get(s)
			})
			r.wantFailure(append(c.wants, "computation result in space home blocks", "blocked_test.go")...)
			if !r.fatal {
				t.Error("the test continued with a function that was still running")
			}
		})
	}
}

func get(url string) {
	if r, err := http.Get(url); err == nil {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
}
