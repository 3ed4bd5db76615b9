//go:build race || invariants

package sim

// few is true if the race detector, or the invariants after every step, slow everything down: then fewer seeds
// are run.
const few = true
