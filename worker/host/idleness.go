package host

import (
	"time"
)

// idleness is what the loop of a host knows of its rest.
type idleness struct {
	// told is the state that residency knows, stirred reports that something has happened since, up to
	// stirredAt in the log.
	told      idleState
	stirred   bool
	stirredAt uint64
	// lastSave reports that the host has saved in order to leave. It does not leave before stays. left reports
	// that it has left.
	lastSave bool
	stays    time.Duration
	left     bool
	observed int // leases of documents
}

// idleState is the state of a host that has done its present work.
type idleState int

const (
	isBusy idleState = iota // something is in flight
	isHeld                  // nothing is, but it must not leave
	isIdle                  // the space may leave once it is saved
)
