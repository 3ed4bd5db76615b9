//go:build !race && !invariants

package sim

const few = false
