// Package dev runs everything in one process for the author of a program: an embedded server, a
// coordinator, two workers that host deployed programs, and a watch over the files, which deploys
// each saved version. `settle dev` is its command.
//
// It runs what a fleet runs, with other flags: the programs go through the same bucket and rules,
// so that saving a file does here what a deployment does there. Documents, timers and versions are
// kept from one start to the next.
package dev
