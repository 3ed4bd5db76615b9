package host

import (
	"time"
)

// idleness is the loop's record of whether its space is idle.
type idleness struct {
	// reported is the state that was reported to residency; active reports activity since then, up to activeAt
	// in the log.
	reported idleState
	active   bool
	activeAt uint64
	// lastSave reports that the host has saved in order to leave. The host does not leave before stays. left
	// reports that it has left.
	lastSave bool
	stays    time.Duration
	left     bool
	observed int // leases of documents
}

// idleState is the state of a host that has done its present work.
type idleState int

const (
	isBusy idleState = iota // something is in flight
	isHeld                  // nothing is in flight, but the space must not be evicted
	isIdle                  // the space may be evicted once it is saved
)
