package demo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A process ends in good order on request, and at once when the process that could request it
// is gone.
func TestAProcessDoesNotOutliveWhoHasStartedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			in    string
			close bool
			want  error
		}{{"stop\n", false, nil}, {"", true, errAbandoned}, {"what?\n", true, errAbandoned}} {
			r, w := io.Pipe()
			var out bytes.Buffer
			told := 0
			done := make(chan error, 1)
			go func() { done <- until(t.Context(), r, &out, func() { told++ }) }()
			time.Sleep(time.Second)
			_, _ = io.WriteString(w, c.in)
			if c.close {
				_ = w.Close()
			}
			if err := <-done; !errors.Is(err, c.want) {
				t.Errorf("%q: %v, want %v", c.in, err, c.want)
			}
			_ = w.Close()
			if told < 9 || !strings.HasPrefix(out.String(), readyWord+"\n") {
				t.Errorf("in a second it has told %d times, after %q", told, out.String())
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r, w := io.Pipe()
		if err := until(ctx, r, io.Discard, func() {}); !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
		_ = w.Close()
	})
}
