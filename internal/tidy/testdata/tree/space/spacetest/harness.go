// Package spacetest is a harness: the core's rules are not for it.
package spacetest

import _ "os"

func run() { go run() }
