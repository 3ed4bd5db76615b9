package faultlog

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestLimit_OfOneMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(Limit(slog.NewTextHandler(&out, nil)))
		lines := func() int {
			defer out.Reset()
			return strings.Count(out.String(), "\n")
		}
		for range 1000 {
			log.Warn("event failed", "error", "x")
			log.Info("a line of a program")
		}
		if got := lines(); got != 100+1000 {
			t.Errorf("%d lines, not 100 warnings and 1,000 others", got)
		}
		log.Error("another message")
		log.With("space", "s").Warn("event failed") // the same limit
		if got := lines(); got != 1 {
			t.Errorf("%d lines, not that of the other message", got)
		}
		time.Sleep(time.Second) // of the bubble's clock: the interval
		log.Warn("event failed")
		if got := out.String(); !strings.Contains(got, "left_out=901") {
			t.Errorf("logged: %s", got)
		}
		out.Reset()
		time.Sleep(time.Hour)
		log.Warn("event failed")
		if got := out.String(); strings.Contains(got, "left_out") {
			t.Errorf("logged: %s", got)
		}
	})
}

// Messages without end do not take memory without end: most share one limit.
func TestLimit_OfVeryManyMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(Limit(slog.NewTextHandler(&out, nil)))
		for n := range 10_000 {
			log.Warn(fmt.Sprintf("message %d", n))
		}
		if got := strings.Count(out.String(), "\n"); got != messages+atOnce {
			t.Errorf("%d lines, not %d", got, messages+atOnce)
		}
	})
}
