package runs

// Bounds are how many calls of actions are pending at a time. Calls beyond them wait in their runs. A size is that of the arguments and of the ID of
// a call, and 100 bytes more.
type Bounds struct {
	// Tasks and TaskBytes bound what is pending of one run. A call that is larger than TaskBytes is made while no other is pending.
	Tasks, TaskBytes int
	// SpaceBytes bounds what is pending of one action in a space. A call that is larger is made while no other of the action is pending.
	SpaceBytes int
	// Starts and StartBytes bound what one step starts, in its commit. Further calls are started by a step that follows it.
	Starts, StartBytes int
}

// The usual bounds.
const (
	maxTasks      = 10_000
	maxTaskBytes  = 8 << 20
	maxLoad       = 32 << 20
	maxStarts     = 256
	maxStartBytes = 128 << 10
)

var defaultBounds = Bounds{Tasks: maxTasks, TaskBytes: maxTaskBytes, SpaceBytes: maxLoad, Starts: maxStarts, StartBytes: maxStartBytes}

// maxSharedLoad is SpaceBytes of an action whose tasks share a document, since clients watch it.
const maxSharedLoad = 256 << 10

// Bound has the workflows keep other bounds than usual: a test makes them small. Call it before Register.
func (s *Set) Bound(b Bounds) { s.bounds = b }
