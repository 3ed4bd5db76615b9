//go:build race

package sim

// few says that the race detector makes everything slow: fewer seeds must do.
const few = true
