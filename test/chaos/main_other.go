//go:build !unix

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "chaos: it sends signals that this system does not have: run it on Linux, or another Unix")
	os.Exit(1)
}
