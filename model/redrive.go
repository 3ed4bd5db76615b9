package model

import (
	"strconv"
	"strings"
)

// RedriveID is the id under which an event is sent again after it has failed: its own
// with a number behind it, so that sending it again twice is one event, and that no
// client can choose it. A redriven event that fails again has the next number.
func RedriveID(event string) string {
	base, n := drives(event)
	return base + ":r" + strconv.Itoa(n+1)
}

// RedriveOf is the inverse of RedriveID: the event that was sent again under that id,
// and false if it is no such id.
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

// drives takes an id apart.
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
