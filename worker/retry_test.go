package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/model"
)

// What goes on failing for one reason is logged ever more rarely, and another reason at once.
func TestRetry_LogsTheSameErrorEverMoreRarely(t *testing.T) {
	for name, first := range map[string]error{
		"a stream that is missing": fmt.Errorf("end of lane 1: %w", model.ErrNoStream), "another error": errors.New("no"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log strings.Builder
				cfg := Config{ID: "w1", Logger: slog.New(slog.NewTextHandler(&log, nil))}
				ctx, cancel := context.WithCancel(t.Context())
				begun, tries := time.Now(), 0
				retry(ctx, cfg, "follow lane", func(context.Context) error {
					tries++
					switch age := time.Since(begun); {
					case age < 10*time.Minute:
						return first
					case age < 11*time.Minute:
						return errors.New("something else")
					}
					cancel()
					return nil
				})
				same, other := strings.Count(log.String(), first.Error()), strings.Count(log.String(), "something else")
				if same < 2 || same > 5 || other != 1 {
					t.Errorf("the first error is logged %d times in ten minutes, the other %d times in one:\n%s", same, other, &log)
				}
				if tries < 11*60/int(lossPause/time.Second) {
					t.Errorf("it was tried %d times", tries)
				}
			})
		})
	}
}
