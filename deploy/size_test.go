package deploy_test

import (
	"os"
	"testing"
)

// The programs of a release have the sizes that docs/performance.md gives, and no more.
func TestProgramsOfAReleaseAreNoLargerThanDocumented(t *testing.T) {
	t.Parallel()
	for name, most := range map[string]int64{"settle": 54_000_000, "spaceworker": 36_000_000, "coordinator": 24_000_000} {
		file, err := os.Stat(binary(t, name))
		if err != nil {
			t.Fatal(err)
		}
		if file.Size() > most {
			t.Errorf("%s has %d bytes, more than %d: which packages are new? (go list -deps ./cmd/%s)", name, file.Size(), most, name)
		}
	}
}
