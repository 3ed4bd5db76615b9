package model

import (
	"strconv"
	"strings"
)

// RedriveID returns the id under which a failed event is sent again: its own id with a number appended, so
// that redriving it twice creates one event, and no client can choose the id. A redriven event that fails
// again gets the next number.
func RedriveID(event string) string {
	base, n := drives(event)
	return base + ":r" + strconv.Itoa(n+1)
}

// RedriveOf is the inverse of RedriveID: it returns the id of the event that was redriven, and
// false if event is not such an id.
func RedriveOf(event string) (string, bool) {
	base, n := drives(event)
	switch n {
	case 0:
		return "", false
	case 1:
		return base, true
	}
	return base + ":r" + strconv.Itoa(n-1), true
}

// FirstID returns the id of the event that was sent first: the id itself, unless the event was redriven.
func FirstID(event string) string {
	base, _ := drives(event)
	return base
}

// drives splits an id into its base and the number of redrives.
func drives(event string) (base string, n int) {
	at := strings.LastIndex(event, ":r")
	if at < 0 {
		return event, 0
	}
	n, err := strconv.Atoi(event[at+2:])
	if err != nil || n < 1 || event[at+2:] != strconv.Itoa(n) {
		return event, 0
	}
	return event[:at], n
}
