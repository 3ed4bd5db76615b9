package events

import (
	"fmt"
	"strings"

	"github.com/settlehq/settle/bench/harness"
)

// Serve plays a role, in a process that the benchmark has started, until its input ends.
func Serve(r harness.Role) error {
	switch {
	case strings.HasPrefix(r.Engine, base):
		return serveHand(r)
	case r.Engine == orderedEngine{}.Name():
		return serveOrdered(r)
	case strings.HasPrefix(r.Engine, settleEngine{}.Name()):
		return serveSettle(r)
	}
	return fmt.Errorf("there is no role %q", r.Engine)
}
