// Package remote has the options of external actions, whose tasks workers hand to performers: processes in any language that have a
// connection to the servers (docs/performers.md).
//
//	scan.External(p, remote.Heartbeat(30*time.Second), remote.QueueBy("host"))
package remote

import (
	"time"

	"github.com/settlehq/settle/worker/tasks"
)

// Rate limits how many tasks of the action a worker hands to performers per second, of all spaces together; up to those of one
// second at once. 0 for no limit, the default.
func Rate(perSecond float64) func(*tasks.Options) {
	return func(o *tasks.Options) { o.Remote.Rate = perSecond }
}

// Heartbeat sets how often a performer has to report that it is at work on a task; default 10 s. After three times as long
// without a message, the attempt has failed with a LostError.
func Heartbeat(every time.Duration) func(*tasks.Options) {
	return func(o *tasks.Options) { o.Remote.Heartbeat = every }
}

// Queue gives the tasks to the performers of one queue. Those that serve the action without a queue do not get them.
func Queue(name string) func(*tasks.Options) {
	return func(o *tasks.Options) { o.Remote.Queue = name }
}

// QueueBy names the field of the input that has the queue of a task. A task without the field, or with an empty text there, is in
// no queue.
func QueueBy(field string) func(*tasks.Options) {
	return func(o *tasks.Options) { o.Remote.QueueBy = field }
}

// Watched leaves the tasks to clients that watch their document and send their ends, such as people: no performer gets them, and they
// do not keep their space in memory.
func Watched() func(*tasks.Options) { return func(o *tasks.Options) { o.Watched = true } }
