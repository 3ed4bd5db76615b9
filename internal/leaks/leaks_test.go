package leaks

import (
	"testing"
	"time"
)

func TestLeft_WaitsForAGoroutineThatIsAboutToEndAndTellsOfOneThatIsNot(t *testing.T) {
	release := make(chan struct{})
	go func() { <-release }() // ends below
	if err := left(time.Now()); err == nil {
		t.Error("one that waits for ever is not told")
	}
	time.AfterFunc(time.Second, func() { close(release) }) // goleak itself would have given up
	if err := left(time.Now().Add(patience)); err != nil {
		t.Errorf("one that ends is told: %v", err)
	}
}
