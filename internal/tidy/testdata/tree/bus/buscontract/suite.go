// Package buscontract is a suite in an ordinary file: it is held to the habits of
// tests all the same.
package buscontract

import (
	"testing"
	"time"
)

func Run(t *testing.T) {
	time.Sleep(1) // want "time.Sleep in a test"
}
