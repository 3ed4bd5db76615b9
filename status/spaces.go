package status

import (
	"strconv"
	"strings"
	"time"

	"github.com/settlehq/settle/model"
)

// Stuck is a space that holds back the position up to which its whole partition is known to be done. After
// the process's aside time the partition continues without the space.
type Stuck struct {
	Space     string `json:"space"`
	Partition int    `json:"partition"`
	// Stream and Event name the event at which the space stands still, "" if there is none or it is not
	// known. Stored is when that event was stored, the zero time if not known. Since is when the worker first
	// saw the space stand still there.
	Stream string    `json:"stream,omitzero"`
	Event  string    `json:"event,omitzero"`
	Stored time.Time `json:"stored,omitzero"`
	Since  time.Time `json:"since"`
	// Cause is one of the Cause constants, Reason is the cause as text.
	Cause  string `json:"cause"`
	Reason string `json:"why"`
}

// Causes are why a space stands still: Stuck.Cause is one of these, or one of the core's for a
// computation (space.Parked).
const (
	CauseNoProgram   = "no program"    // no program is assigned to it
	CauseRunning     = "running"       // its handler, or one of its nodes, has not returned
	CauseQueued      = "queued"        // other spaces are loaded first
	CauseLoading     = "loading"       // it is being loaded
	CauseFailed      = "failed"        // it could not be loaded, or served
	CauseUnsaved     = "unsaved"       // its changes cannot be saved
	CauseUncommitted = "uncommitted"   // the log does not answer
	CauseEarly       = "early"         // it has an event whose predecessor is missing
	CauseBusy        = "not answering" // the space is busy and has not reported with what
	CauseRetry       = "retry"         // its handler is called again at a later time
	CauseLost        = "lost attempt"  // an attempt ended with its process, or was given up
	CauseTurn        = "turn"          // no particular reason
)

// FailingAction is an action, or an input, of a space whose tasks fail.
type FailingAction struct {
	Space  string `json:"space"`
	Action string `json:"action"`
	// GivenUp is how many of its tasks were given up since the worker has started. 0 means that a task is tried again and again.
	GivenUp uint64 `json:"given_up,omitzero"`
	// Key names the task that was given up last, or else the one that was tried most often, after so many Attempts, the last of which has ended in Error.
	Key      string `json:"key"`
	Attempts int    `json:"attempts"`
	Error    string `json:"error"`
	// Handled reports that the program has a function that is called with the end of each task.
	Handled bool `json:"handled,omitzero"`
	// Since is when the worker has first seen a task of it fail, and At when that task has.
	Since time.Time `json:"since"`
	At    time.Time `json:"at"`
}

// FailingNodes are the nodes of a space that are needed, because they or what follows from them is observed, and whose last runs have failed: each
// keeps the output that it had before.
type FailingNodes struct {
	Space string `json:"space"`
	// Nodes are the first of them by name, Count is the number of all.
	Nodes []FailingNode `json:"nodes"`
	Count int           `json:"count"`
	// Docs are the first observed documents by name that follow from them.
	Docs []string `json:"docs,omitzero"`
	// Readers are spaces that read documents which follow from them, ReaderCount is the number of all.
	Readers     []string `json:"readers,omitzero"`
	ReaderCount int      `json:"reader_count,omitzero"`
	// Since is when the worker has first seen one fail since all had succeeded.
	Since time.Time `json:"since"`
}

// FailingNode is a node whose last run has failed.
type FailingNode struct {
	Node  string `json:"node"`
	Error string `json:"error"`
}

// Differing is a node that is not idempotent: two runs that have read the same had different results.
type Differing struct {
	Node string `json:"node"`
	// Spaces is in how many spaces of the worker that was found, Space is the first of them by name, and Text says what has differed there.
	Spaces int    `json:"spaces"`
	Space  string `json:"space"`
	Text   string `json:"text"`
	// Since is when it was first found.
	Since time.Time `json:"since"`
}

// Unsettled is a space in which nodes do not converge: they change what they read, directly or through each other.
type Unsettled struct {
	Space string `json:"space"`
	// Nodes are the first of those that were held back when that was noticed, Count is the number of all.
	Nodes []string `json:"nodes"`
	Count int      `json:"count"`
	// Way is a way round through nodes of the space: a node, the place that it writes, the node that reads that, and so on. It is nil if none
	// was found, as when the way leads through other spaces.
	Way []string `json:"way,omitzero"`
	// Through are the derived documents of a circle over several spaces, "SPACE/DOCUMENT": each is read in the space of the next one, and the
	// last in that of the first. It is nil for a circle within the space.
	Through []string  `json:"through,omitzero"`
	Since   time.Time `json:"since"`
}

// Round returns the way as text, with the first node again at its end; "" if there is none. Places are named if they differ from the node
// that writes them.
func (u *Unsettled) Round() string {
	switch {
	case len(u.Through) > 0:
		return strings.Join(u.Through, " -> ") + " -> " + u.Through[0]
	case len(u.Way) == 0:
		return ""
	}
	var b strings.Builder
	for i := 0; i+1 < len(u.Way); i += 2 {
		b.WriteString(u.Way[i])
		if u.Way[i+1] != u.Way[i] {
			b.WriteString(" (" + u.Way[i+1] + ")")
		}
		b.WriteString(" -> ")
	}
	return b.String() + u.Way[0]
}

// Load is a space with many waiting events.
type Load struct {
	Space     string `json:"space"`
	Partition int    `json:"partition"`
	// Events were read but not handled; more may wait in the lane, even if Events is 0.
	Events int `json:"events"`
}

// Late is a space whose timers, jobs or delayed events are due but not handled.
type Late struct {
	Space     string `json:"space"`
	Partition int    `json:"partition"`
	// Waiting is the number of the space's events that wait for their time or are late; Since is when the
	// first of them was due, by the worker's clock.
	Waiting int       `json:"waiting"`
	Since   time.Time `json:"since"`
}

// Missed describes times of a job that were passed over: they are replaced by one event, which was due At, or
// skipped, according to the job's CatchUp.
type Missed struct {
	Space string    `json:"space"`
	Cron  string    `json:"cron"`
	Times int       `json:"times"`
	At    time.Time `json:"at"`
}

// Watches are the live queries that a worker serves.
type Watches struct {
	// Open is the number of open watches, at most Limit; Refused is the number of watches that exceeded the
	// limit.
	Open    int    `json:"open"`
	Limit   int    `json:"limit"`
	Refused uint64 `json:"refused,omitzero"`
	// Space and Document name the document with most watches, and Most is their number.
	Space    string `json:"space,omitzero"`
	Document string `json:"document,omitzero"`
	Most     int    `json:"most,omitzero"`
}

// Loss is a partition or a space that a worker refuses to serve because a stream lacks data that it is known
// to have had: see model.LossError.
type Loss struct {
	Kind      model.LossKind `json:"kind"`
	Partition int            `json:"partition"`
	Space     string         `json:"space,omitzero"`
	Known     uint64         `json:"known,omitzero"`
	Found     uint64         `json:"found,omitzero"`
	// Since is when the worker first detected the loss, Reason is the cause as text.
	Since  time.Time `json:"since"`
	Reason string    `json:"why"`
}

// What returns a name of the refused partition or space.
func (l *Loss) What() string {
	if l.Space != "" {
		return "space " + l.Space
	}
	return "partition " + strconv.Itoa(l.Partition)
}
