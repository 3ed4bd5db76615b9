//go:build race || invariants

package sim

// few says that the race detector, or the invariants after every step, make everything slow:
// fewer seeds must do.
const few = true
