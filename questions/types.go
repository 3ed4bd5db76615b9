package questions

import (
	"errors"
	"fmt"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/worker"
)

// Endpoints of the service. A worker has an endpoint of its own for the last one, see TopEndpoint.
const (
	AskWhy   = "why"
	AskLane  = "lane"
	AskGraph = "graph"
)

// Query is a question about a space. Fields that an endpoint does not use must be zero.
type Query struct {
	Space string `json:"space"`
	// Of names a node, a document or an event (AskWhy), or the node whose neighbourhood is wanted (AskGraph), "" for the whole graph.
	Of string `json:"of,omitzero"`
	// As, if not "", is what Of names, and Stream is that of an event, if several have the id. With a Stream, AskLane answers whether clients may send
	// on it, and nothing else.
	As     Kind   `json:"as,omitzero"`
	Stream string `json:"stream,omitzero"`
	// Load loads a space that is not in memory.
	Load bool `json:"load,omitzero"`
	// Check makes the space repeat one in ten runs of its computations for two minutes, and log those that have another
	// result then (AskWhy).
	Check bool `json:"check,omitzero"`
	// Limit is how many runs (AskWhy), events (AskLane) or nodes (AskGraph) to return, 0 for the default.
	Limit int `json:"limit,omitzero"`
	// After continues after the events or nodes of an answer whose Next it is.
	After int `json:"after,omitzero"`
	// Depth is how many edges the neighbourhood of a node extends, 0 for 1.
	Depth int `json:"depth,omitzero"`
}

// Kind is what a name stands for.
type Kind string

const (
	KindNode     Kind = "node"
	KindDocument Kind = "document"
	KindEvent    Kind = "event"
)

// Bounds of a question.
const (
	DefaultRuns   = 5
	MaxRuns       = 100
	DefaultEvents = 50
	MaxEvents     = 500
	DefaultNodes  = 300
	MaxNodes      = 500
	MaxDepth      = 16
	maxEdges      = 2000
	maxPlaces     = 50 // that a node reads or writes
	maxText       = 300
)

// limits are the default and the largest Limit of an endpoint.
var limits = map[string][2]int{AskWhy: {DefaultRuns, MaxRuns}, AskLane: {DefaultEvents, MaxEvents}, AskGraph: {DefaultNodes, MaxNodes}}

// check returns an error with the reason why a question is not valid, and fills in defaults.
func (q *Query) check(endpoint string) error {
	bounds := limits[endpoint]
	if q.Limit == 0 {
		q.Limit = bounds[0]
	}
	err := model.CheckName("space", q.Space)
	switch {
	case err != nil:
	case q.Limit < 1 || q.Limit > bounds[1]:
		err = fmt.Errorf("a limit of %d: use 1 to %d", q.Limit, bounds[1])
	case q.After < 0:
		err = fmt.Errorf("after %d: use the next of an answer", q.After)
	case q.Depth < 0 || q.Depth > MaxDepth:
		err = fmt.Errorf("a depth of %d: use 1 to %d", q.Depth, MaxDepth)
	case endpoint == AskWhy:
		err = q.checkName()
	case endpoint == AskLane && q.Of != "":
		err = errors.New("the lane is that of the whole space: name nothing in it")
	case q.Of != "":
		err = model.CheckName("node", q.Of)
	}
	if err == nil && q.Stream != "" {
		err = model.CheckName("stream", q.Stream)
	}
	if err != nil {
		return &model.ServiceError{Code: model.CodeBadRequest, Text: err.Error()}
	}
	return nil
}

func (q *Query) checkName() error {
	switch q.As {
	case KindNode, KindDocument:
		return model.CheckName(string(q.As), q.Of)
	case KindEvent, "":
		return model.CheckAnyEventID(q.Of)
	}
	return fmt.Errorf("%q: name a node, a document or an event", q.As)
}

// State is whether a space could be inspected.
type State string

const (
	// Awake: the space is in memory.
	Awake State = "awake"
	// Asleep: it is not. Nothing in it runs before an event, an observer or a timer wakes it. The answer has what the log knows.
	Asleep State = "asleep"
	// Loading: it is being loaded, or waits for that.
	Loading State = "loading"
	// Running: it is inside of application code, and did not answer in time.
	Running State = "running"
	// Unserved: no program runs it, so that its events wait.
	Unserved State = "unserved"
)

// About is what all answers about a space have in common.
type About struct {
	Space string `json:"space"`
	State State  `json:"state"`
	// Note explains a State that is not Awake.
	Note string `json:"note,omitzero"`
	// Worker serves the space, and At is its clock.
	Worker string    `json:"worker"`
	At     time.Time `json:"at"`
	// Program and Version name the program that runs. Revision is that of the last commit that the space knows to be in the log; the answer
	// may be ahead of it. Halt is why the space runs nothing.
	Program  string `json:"program,omitzero"`
	Version  string `json:"version,omitzero"`
	Revision uint64 `json:"revision,omitzero"`
	Halt     string `json:"halt,omitzero"`

	// waits are the events that wait in a space that is Unserved, and more reports that there may be others.
	waits []model.Message
	more  bool
}

// Why answers AskWhy: one of the three is set.
type Why struct {
	About
	Kind     Kind      `json:"kind"`
	Node     *Node     `json:"node,omitzero"`
	Document *Document `json:"document,omitzero"`
	Event    *Event    `json:"event,omitzero"`
}

// Node explains a node.
type Node struct {
	ID   string `json:"id"`
	Kind string `json:"kind,omitzero"` // computation or effect
	// Output is the document that it writes by returning a value.
	Output string `json:"output,omitzero"`
	// State is why it does not run now: one of inspect.RunState, as text, and Reason is the same as a sentence. Status is "clean", "invalid"
	// or "never-ran".
	State  string `json:"state,omitzero"`
	Status string `json:"status,omitzero"`
	Reason string `json:"reason"`
	// Live is set if something needs it, and Need is what; or what is missing.
	Live bool   `json:"live"`
	Need string `json:"need,omitzero"`
	// Gate holds it until Until.
	Gate  string    `json:"gate,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Waits is the document of another space that has not arrived.
	Waits string `json:"waits,omitzero"`
	// Pending are the inputs that have changed since it ran.
	Pending []Cause `json:"pending,omitzero"`
	// Behind is an upstream node that is not up to date, and why.
	Behind string `json:"behind,omitzero"`
	// Runs and Errors count its runs since the space was loaded, and LastError is that of the last one.
	Runs      uint64 `json:"runs"`
	Errors    uint64 `json:"errors,omitzero"`
	LastError string `json:"last_error,omitzero"`
	// Height is its place in the order of runs; Circle are the nodes of a circle that it is on.
	Height int32    `json:"height"`
	Circle []string `json:"circle,omitzero"`
	Reads  []string `json:"reads,omitzero"`
	Writes []string `json:"writes,omitzero"`
	// Last is its last run that changed something, as the log has it, and Inputs are what made it run.
	Last   *Change `json:"last,omitzero"`
	Inputs []Input `json:"inputs,omitzero"`
	// Recent are its last runs, newest first, as far as they are recorded: a space records its runs for some minutes after a question.
	Recent   []Run         `json:"recent,omitzero"`
	Recorded time.Duration `json:"recorded_ns,omitzero"`
	// NotIdempotent says which of the recorded runs of a computation have read the same and written different values, ""
	// if none have.
	NotIdempotent string `json:"not_idempotent,omitzero"`
	// Cost is what its runs have cost since they are measured; nil if they were not.
	Cost *worker.Usage `json:"cost,omitzero"`
}

// Cause is an input of a node that has changed.
type Cause struct {
	Address string `json:"address"`
	By      string `json:"by,omitzero"` // what has changed it, if that is known
}

// Change is a transaction in the log.
type Change struct {
	Revision uint64    `json:"revision"`
	Time     time.Time `json:"time"`
	Runtime  string    `json:"runtime"`
	history.Step
}

// Input is a changed place that made a node run. Its values are not known if the log around the run does not have them.
type Input struct {
	Address string         `json:"address"`
	Change  *history.Place `json:"change,omitzero"`
	By      string         `json:"by,omitzero"`
}

// Run is a recorded run.
type Run struct {
	Time time.Time `json:"time"`
	Pass uint64    `json:"pass"`
	// Order is its place among the Of runs and attempts of its pass.
	Order  int     `json:"order"`
	Of     int     `json:"of"`
	Causes []Cause `json:"causes,omitzero"`
	// Wrote is the number of places that it has written, and Transaction its number, 0 if it has changed nothing.
	Wrote       int    `json:"wrote"`
	Transaction uint64 `json:"transaction,omitzero"`
	Waits       string `json:"waits,omitzero"`
	Error       string `json:"error,omitzero"`
}

// Document explains a document.
type Document struct {
	ID    string      `json:"id"`
	Value model.Value `json:"value,omitzero"`
	// Observed is set if clients, or other spaces, observe it.
	Observed bool `json:"observed,omitzero"`
	// Writers and Readers are nodes. Derived explains the node of which it is the output.
	Writers []string `json:"writers,omitzero"`
	Readers []string `json:"readers,omitzero"`
	Derived *Node    `json:"derived,omitzero"`
	// Changes are the last ones, newest first.
	Changes []Change         `json:"changes,omitzero"`
	End     history.Boundary `json:"end,omitzero"`
}

// Event explains an event.
type Event struct {
	history.EventRef
	// State is how the event has ended, or "at the head", "queued" and so on (inspect.Reason), or a lineage.State.
	State  string `json:"state"`
	Reason string `json:"reason"`
	// Ahead is the number of events before it in the queue.
	Ahead int `json:"ahead,omitzero"`
	// Attempts and LastError are those of Head, of an event that has not ended.
	Attempts  int         `json:"attempts,omitzero"`
	LastError string      `json:"last_error,omitzero"`
	Until     time.Time   `json:"until,omitzero"`
	Result    model.Value `json:"result,omitzero"`
	Error     string      `json:"error,omitzero"`
	// Lane is its sequence in the lane; Sent is when it was stored there, and Ended when its receipt was. Revision is that of the receipt.
	Lane     uint64    `json:"lane,omitzero"`
	Sent     time.Time `json:"sent,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
	Revision uint64    `json:"revision,omitzero"`
	// CausedBy are the events that led to it, the nearest first, and Caused is the number of those that it has sent.
	CausedBy []history.EventRef `json:"caused_by,omitzero"`
	Caused   int                `json:"caused,omitzero"`
}

// Lane answers AskLane.
type Lane struct {
	About
	// Internal reports that only spaces send on the stream of the question.
	Internal bool `json:"internal,omitzero"`
	// Head is the next event, nil if none waits.
	Head *Head `json:"head,omitzero"`
	// Queued, Uncommitted, Early and FollowUps count the events that wait for their turn, for the log, for their predecessor from the same
	// space, and behind an event that has not been read yet. Timers are those that wait for a time. More events wait in the stream if
	// Unread is set.
	Queued      int  `json:"queued"`
	Uncommitted int  `json:"uncommitted"`
	Early       int  `json:"early"`
	FollowUps   int  `json:"follow_ups"`
	Timers      int  `json:"timers"`
	Unread      bool `json:"unread,omitzero"`
	// Pending is a page of all of them, in order; Next is the After of the next page, 0 if there is none.
	Pending []Pending `json:"pending,omitzero"`
	Next    int       `json:"next,omitzero"`
}

// Head is the event at the head of the lane.
type Head struct {
	Stream string `json:"stream"`
	Event  string `json:"event"`
	// Cause is why it has not been handled, as one word (inspect.Cause…), and Reason as a sentence.
	Cause  string `json:"cause"`
	Reason string `json:"reason"`
	// Attempts is the number of attempts that ended in a transient error, of Most (0 for no limit); Lost that of those that ended with their process, of
	// MostLost. Until is when it is tried again, and Fails when it fails if what it waits for does not come.
	Attempts int       `json:"attempts,omitzero"`
	Most     int       `json:"most,omitzero"`
	Lost     int       `json:"lost,omitzero"`
	MostLost int       `json:"most_lost,omitzero"`
	Until    time.Time `json:"until,omitzero"`
	Fails    time.Time `json:"fails,omitzero"`
	// LastError is the first line of the last transient error, "" if there was none.
	LastError string `json:"last_error,omitzero"`
	// Documents are those of other spaces, and Nodes those of this one, that it waits for.
	Documents []string `json:"documents,omitzero"`
	Nodes     []string `json:"nodes,omitzero"`
}

// Pending is an event that has not ended.
type Pending struct {
	Stream string    `json:"stream,omitzero"`
	Event  string    `json:"event,omitzero"`
	Lane   uint64    `json:"lane,omitzero"`
	Reason string    `json:"reason"`
	Ahead  int       `json:"ahead,omitzero"`
	Timer  string    `json:"timer,omitzero"`
	At     time.Time `json:"at,omitzero"`
	// Origin and Position are those of an event that another space has sent.
	Origin   string `json:"origin,omitzero"`
	Position uint64 `json:"position,omitzero"`
}

// Graph answers AskGraph.
type Graph struct {
	About
	// Nodes are sorted by height, then in order of registration, and Edges by their ends. Total is the number of nodes of the space, or of the
	// neighbourhood. Next is the After of the next page, 0 if there is none; each page has the edges that end in its nodes. Cut is set if there are
	// more edges than that.
	Nodes []GraphNode `json:"nodes"`
	Edges []GraphEdge `json:"edges"`
	Total int         `json:"total"`
	Next  int         `json:"next,omitzero"`
	Cut   bool        `json:"cut,omitzero"`
	// Observed are all documents that clients or other spaces observe.
	Observed []string `json:"observed,omitzero"`
	// Circles are sets of nodes that read, directly or through each other, what they write.
	Circles [][]string `json:"circles,omitzero"`
	// Unsettled are nodes that the last passes had to defer because they do not converge, and Turning the circles in which that was seen to
	// happen: a node, the document that it wrote, the next node, and so on.
	Unsettled []string   `json:"unsettled,omitzero"`
	Turning   [][]string `json:"turning,omitzero"`
	// Rounds are the circles over several spaces that turn, and whose pace is limited (docs/adr/0068): documents, "SPACE/DOCUMENT", each of which
	// is read in the space of the next one, and the last in that of the first.
	Rounds [][]string `json:"rounds,omitzero"`
}

// GraphNode is a node of a graph.
type GraphNode struct {
	ID     string `json:"id"`
	Kind   string `json:"kind"`
	Output string `json:"output,omitzero"`
	State  string `json:"state"`
	Live   bool   `json:"live"`
	Root   string `json:"root,omitzero"` // what needs it, regardless of readers
	// Observed is set if clients, or other spaces, observe what it writes.
	Observed bool   `json:"observed,omitzero"`
	Height   int32  `json:"height"`
	Runs     uint64 `json:"runs"`
	Errors   uint64 `json:"errors,omitzero"`
	Error    string `json:"last_error,omitzero"`
	Parent   string `json:"parent,omitzero"`
	// Circle is the number of its circle in Graph.Circles, from 1; 0 if it is on none.
	Circle int `json:"circle,omitzero"`
	// Round is the number of a circle of Graph.Rounds that leads through it, from 1; 0 if none does.
	Round int `json:"round,omitzero"`
	// Sources are the documents that it reads and no node writes: those of handlers, and of other spaces.
	Sources []string  `json:"sources,omitzero"`
	Until   time.Time `json:"until,omitzero"`
	Gate    string    `json:"gate,omitzero"`
	Waits   string    `json:"waits,omitzero"`
}

// GraphEdge leads from the node that writes a place to one that reads it.
type GraphEdge struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Address string `json:"address"`
	// Order is set if it only orders: a run of From does not make To run by itself.
	Order bool `json:"order,omitzero"`
}

// Top is what one worker has measured.
type Top struct {
	Worker string `json:"worker"`
	worker.Profile
}
