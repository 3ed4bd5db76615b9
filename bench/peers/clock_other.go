//go:build !unix

package main

import "time"

func cpuTime() time.Duration { panic("-cpu needs a Unix") }
