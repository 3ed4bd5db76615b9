package audit

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// Remove deletes everything that a deployment has stored on a server.
func Remove(ctx context.Context, js jetstream.JetStream, prefix string, partitions int) error {
	prefix = strings.ToUpper(prefix)
	names := []string{"KV_" + prefix + "_WORKERS", "KV_" + prefix + "_PROGRAMS", prefix + "_DEAD"}
	for p := range partitions {
		n := strconv.Itoa(p)
		names = append(names, prefix+"_LANE_"+n, prefix+"_LOG_"+n, "KV_"+prefix+"_STATE_"+n)
	}
	var errs []error
	for _, name := range names {
		if err := js.DeleteStream(ctx, name); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			errs = append(errs, fmt.Errorf("delete stream %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}
