package main

import (
	"testing"

	"github.com/settlehq/settle/bus/embedded"
)

func TestPipeline(t *testing.T) {
	dir := t.TempDir()
	for _, c := range [][3]int{{8, 4, 270}, {0, 4, 0}, {3, 8, 0}} {
		got, err := run(t.Context(), c[0], c[1], embedded.Config{StoreDir: dir})
		if err != nil || got != c[2] {
			t.Errorf("(%d, %d): %d, %v; want %d", c[0], c[1], got, err, c[2])
		}
	}
}
