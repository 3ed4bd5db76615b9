//go:build race || invariants

package sim

// few is true if the race detector, or the check of invariants after every step, slows everything down;
// then fewer seeds are run.
const few = true
