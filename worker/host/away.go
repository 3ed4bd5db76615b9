package host

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/settlehq/settle/port"
)

// cutOff reports whether a context ended because no server could be reached.
func cutOff(ctx context.Context) bool { return errors.Is(context.Cause(ctx), port.ErrNoServer) }

// awayError lists what a worker left unfinished because it had to leave without a server.
func (w *Worker) awayError(parts []*servedPartition) error {
	spaces, of := 0, []string{}
	for _, p := range parts {
		if p.tenure.undone > 0 {
			spaces += p.tenure.undone
			of = append(of, fmt.Sprint(p.number))
		}
	}
	space := w.cfg.Terms.Space
	undone := "every " + space + " was saved before"
	switch {
	case spaces == 1:
		undone = "1 " + space + " was not saved, of partition " + of[0]
	case spaces > 1:
		undone = fmt.Sprintf("%d %ss were not saved, of partitions %s", spaces, space, strings.Join(of, ", "))
	}
	return fmt.Errorf("%s %s has left without announcing it: %w for %v; %s; nothing that was acknowledged is lost, the next owner goes on from the log",
		w.cfg.Terms.Process, w.cfg.ID, port.ErrNoServer, w.cfg.Handover, undone)
}
