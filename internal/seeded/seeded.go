// Package seeded makes the property tests of a package repeatable: a test binary that
// imports it takes the seed of its random cases from the environment variable
// PROPERTY_SEED, if that is set.
//
// A gate that tries other cases on every run would stop a change for a fault that is not
// in it, so .ci/run sets a seed. To search for faults, leave it unset (make
// properties), or pass -rapid.seed, which takes precedence.
package seeded

import (
	"flag"
	"os"

	_ "pgregory.net/rapid" // registers the flag
)

func init() { set(os.Getenv("PROPERTY_SEED")) }

// set panics on a seed that is not a number: to ignore it would look like a repeatable run.
func set(seed string) {
	if seed == "" {
		return
	}
	if err := flag.Set("rapid.seed", seed); err != nil {
		panic("PROPERTY_SEED: " + err.Error())
	}
}
