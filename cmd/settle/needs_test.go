package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/provision"
)

// A command waits, up to its --timeout, for a needed stream that is electing a leader. It does not wait
// for a missing stream, or for one that it does not need.
func TestNeeds_ACommandWaitsForAStreamThatElectsALeader(t *testing.T) {
	silent := provision.Defect{Asset: provision.Asset{Stream: "SETTLE_LOG_0"}, Err: provision.ErrSilent}
	missing := provision.Defect{Asset: provision.Asset{Stream: "SETTLE_LANE_0"}, Err: errors.New("no such stream")}
	for name, c := range map[string]struct {
		need    need
		defects []provision.Defect
		until   time.Duration // when the defects are gone; 0 is never
		waits   time.Duration
		wrong   string
	}{
		"elects a leader":               {ofSpaces("s").patient(time.Minute), []provision.Defect{silent}, 25 * time.Second, 27 * time.Second, ""},
		"never answers":                 {ofSpaces("s").patient(time.Minute), []provision.Defect{silent}, 0, 63 * time.Second, "may have no leader"},
		"never answers, no --timeout":   {ofSpaces("s"), []provision.Defect{silent}, 0, 36 * time.Second, "may have no leader"},
		"another is missing":            {ofSpaces("s").patient(time.Minute), []provision.Defect{silent, missing}, 0, 9 * time.Second, "no such stream"},
		"is not needed":                 {need{patience: time.Minute}, []provision.Defect{silent}, 0, 9 * time.Second, ""},
		"a short --timeout: looks once": {ofSpaces("s").patient(time.Second), []provision.Defect{silent}, 25 * time.Second, 9 * time.Second, "may have no leader"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				look := func(context.Context) ([]provision.Defect, error) {
					time.Sleep(9 * time.Second) // the timeout must not coincide with a retry: timers of one instant fire in any order
					if c.until > 0 && time.Since(began) > c.until {
						return nil, nil
					}
					return c.defects, nil
				}
				_, err := c.need.met(t.Context(), look, 1)
				if waited := time.Since(began); waited != c.waits {
					t.Errorf("the command waited for %v, want %v", waited, c.waits)
				}
				if got := errors.Join(err, errors.New("")).Error(); (err != nil) != (c.wrong != "") || !strings.Contains(got, c.wrong) {
					t.Errorf("the error is %v, want %q", err, c.wrong)
				}
			})
		})
	}
}
