// Package dev runs everything in one process for somebody who writes a program: an embedded
// server, a coordinator, two workers that host what is deployed, and a watch over the files,
// each of whose versions is deployed as it is saved. `settle dev` is its command.
//
// What it runs is what a fleet runs, with other flags: the programs go through the same
// bucket and rules, so what a save does here a deployment does there. Documents, timers and
// versions stay from one start to the next.
package dev
