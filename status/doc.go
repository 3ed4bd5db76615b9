// Package status declares what a process that serves spaces reports of itself: the Figures that it
// answers at its endpoint, and the types that they consist of. Workers of package worker and
// servers of package ordered answer with them; package internal/fleet collects them for `settle
// fleet` and `settle doctor`.
//
// It holds types and the endpoint, and no judgement: which spaces are stuck, late or busy is
// decided by the process that serves them.
package status
