package settletest_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// recorder is a TB that records its messages, for tests of failing tests.
type recorder struct {
	t      *testing.T
	mu     sync.Mutex
	errors []string
	fatal  bool
	logs   []string
}

func (r *recorder) Helper() {}

func (r *recorder) Logf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.logs = append(r.logs, fmt.Sprintf(format, args...))
}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	r.fatal = true
	runtime.Goexit()
}

// failing runs a test that must fail, and returns its messages.
func failing(t *testing.T, test func(tb *recorder)) *recorder {
	t.Helper()
	r := &recorder{t: t}
	done := make(chan struct{})
	go func() { // ends with the test, which returns or calls Fatalf
		defer close(done)
		test(r)
	}()
	<-done
	return r
}

// wantFailure checks that the test has failed exactly once, with a message that contains all parts.
func (r *recorder) wantFailure(parts ...string) {
	r.t.Helper()
	if len(r.errors) != 1 {
		r.t.Fatalf("the test reported %d failures, want one:\n%s", len(r.errors), strings.Join(r.errors, "\n"))
	}
	for _, p := range parts {
		if !strings.Contains(r.errors[0], p) {
			r.t.Errorf("the failure does not contain %q:\n%s", p, r.errors[0])
		}
	}
}

func (r *recorder) wantNone() {
	r.t.Helper()
	if len(r.errors) != 0 {
		r.t.Errorf("the test failed:\n%s", strings.Join(r.errors, "\n"))
	}
}

func goexit() { runtime.Goexit() }
