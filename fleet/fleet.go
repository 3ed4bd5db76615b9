// Package fleet has the options of actions that limit what all workers of a deployment perform together, in all spaces. They are options of
// Perform and External, and of those of package flow. docs/performers.md has what is exact.
//
//	charge.Perform(p, do, fleet.AtATime(2), fleet.By("card"))
package fleet

import "github.com/settlehq/settle/worker/tasks"

// AtATime limits the tasks of the action that are performed at the same time; 0 for no limit, the default.
func AtATime(n int) func(*tasks.Options) { return func(o *tasks.Options) { o.Fleet.AtATime = n } }

// Rate limits the tasks of the action that begin per second; after a pause, up to those of one second at once. 0 for no limit, the default.
func Rate(perSecond float64) func(*tasks.Options) {
	return func(o *tasks.Options) { o.Fleet.PerSecond = perSecond }
}

// By names a field of the input, or a keyword argument of a workflow's call. Each value of it has the limits AtATime and Rate for itself. Tasks
// without the field share them, too.
func By(field string) func(*tasks.Options) { return func(o *tasks.Options) { o.Fleet.By = field } }
