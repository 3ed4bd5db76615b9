//go:build !race

package sim

const few = false
