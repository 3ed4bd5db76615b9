package leaks

import (
	"testing"
	"time"
)

func TestLeft_WaitsForAGoroutineThatIsAboutToEndAndTellsOfOneThatIsNot(t *testing.T) {
	release := make(chan struct{})
	go func() { <-release }() // ends below
	if err := left(time.Now()); err == nil {
		t.Error("a goroutine that waits without end is not reported")
	}
	time.AfterFunc(time.Second, func() { close(release) }) // goleak itself would have given up
	if err := left(time.Now().Add(patience)); err != nil {
		t.Errorf("a goroutine that ends is reported: %v", err)
	}
}
