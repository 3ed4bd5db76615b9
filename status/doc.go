// Package status declares what a process that serves spaces reports about itself: the Figures that it answers
// at its endpoint, and the types that they consist of. Workers of package worker and servers of package
// ordered answer with them; package internal/fleet collects them for `settle fleet` and `settle doctor`.
//
// The package contains types and the endpoint, and makes no judgement: the process that serves a space
// decides whether it is stuck, late or busy.
package status
