package simkit

import (
	"errors"
	"fmt"
	"strings"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// Kind is the kind of a problem.
type Kind uint8

const (
	// NodeError: a computation or effect returned an error or panicked.
	NodeError Kind = iota + 1
	// DeadLetter: an event that the world itself sent, by a handler, a timer or a cron job, failed
	// or was refused.
	DeadLetter
	// NotIdempotent: a function had another result when it was run again.
	NotIdempotent
	// OutsideWrite: a node wrote outside its declared locations.
	OutsideWrite
	// Unsettled: a node runs again and again, and was held back for it.
	Unsettled
	// Startup: a space could not be loaded.
	Startup
	// Undelivered: an event was sent to a space that has no program.
	Undelivered
)

// Problem is a mistake or failure in a space.
type Problem struct {
	Space string
	Kind  Kind
	// Node, or Stream and Event, identify the code.
	Node, Stream, Event string
	// Text describes the problem; if it is empty, Err does. A dead letter may have both: Err is the
	// error of its handler, which Text contains, too.
	Text  string
	Err   error
	Stack []byte // of a panic
}

// Source returns the name of the node, or else of the stream.
func (p *Problem) Source() string {
	if p.Node != "" {
		return p.Node
	}
	return p.Stream
}

func (p Problem) String() string {
	text := p.Text
	if text == "" && p.Err != nil {
		text = p.Err.Error()
	}
	line := "space " + p.Space + ": "
	if p.Node != "" {
		line += "node " + p.Node + ": "
	} else if p.Stream != "" {
		line += "event " + p.Event + " on " + p.Stream + ": "
	}
	line += text
	if len(p.Stack) > 0 {
		line += "\n" + indent(userFrames(string(p.Stack)))
	}
	return line
}

// Letter is an event that failed or was refused.
type Letter struct {
	Space, Stream string
	model.Receipt
}

func (l Letter) String() string {
	return fmt.Sprintf("space %s: event %s on %s %s: %s", l.Space, l.Event, l.Stream, l.Outcome, l.Error)
}

// problem records a problem. A repeated problem of a node is recorded once.
func (w *World) problem(p Problem) {
	if p.Kind == OutsideWrite || p.Kind == Unsettled {
		once := fmt.Sprint(p.Space, " ", p.Kind, " ", p.Node)
		if w.reported[once] {
			return
		}
		w.reported[once] = true
	}
	w.problems = append(w.problems, p)
}

// TakeProblems returns the problems since its last call.
func (w *World) TakeProblems() []Problem {
	p := w.problems
	w.problems = nil
	return p
}

// Letters returns the events that failed or were refused so far, oldest first.
func (w *World) Letters() []Letter { return w.letters }

// Undelivered returns the events that were sent to spaces without a program.
func (w *World) Undelivered() []model.Event { return w.undelivered }

// hooks returns the callbacks of the core.
func (s *Space) hooks() space.Trace {
	return space.Trace{
		HandleStart: func(ev *model.Event) model.Trace {
			s.running("handler of", ev.Stream, "handler of "+ev.Stream)
			return ev.Trace
		},
		HandleEnd: func(space.HandleInfo) { s.w.turns.exitIfAbandoned() },
		RunBegan:  s.began,
		RunEnd:    s.ended,
		Violated:  s.violated,
		Round: func(i space.RoundInfo) {
			if i.Over {
				return
			}
			own := i.Docs[0]
			for _, at := range i.Docs {
				if doc, here := strings.CutPrefix(at, s.name+"/"); here {
					own = doc
					break
				}
			}
			s.w.problem(Problem{
				Space: s.name, Kind: Unsettled, Node: own,
				Text: "does not come to rest: it follows from itself in a circle over spaces: " + strings.Join(i.Docs, " -> ") + " -> " + i.Docs[0] + ". Its pace is limited",
			})
		},
		Gated: func(i space.GateInfo) { s.gated = append(s.gated, i.Node) },
	}
}

// longWave is the number of passes in a row that hold nodes back from which that is a problem although no way leads
// round: until then it may be a long wave of changes, which ends by itself.
const longWave = 10

// noteGated records the problems of the nodes that the last pass has held back.
func (s *Space) noteGated() {
	if len(s.gated) == 0 {
		if !s.core.Recorder().NonConverging() {
			s.waves = 0
		}
		return
	}
	s.waves++
	now := s.core.Inspect()
	for _, node := range s.gated {
		if s.waves >= longWave || now.WayRound(node) != nil {
			s.w.problem(Problem{
				Space: s.name, Kind: Unsettled, Node: node,
				Text: "does not come to rest: it runs again and again in one pass, because what it reads follows from what it writes. It is held back",
			})
		}
	}
	s.gated = s.gated[:0]
}

// running records which function is about to run, and returns its count. The text is built once.
func (s *Space) running(kind, name, id string) *count {
	c := s.runs[id]
	if c == nil {
		c = &count{function: kind + " " + name + " in space " + s.name}
		s.runs[id] = c
	}
	s.w.turns.current.Store(&c.function)
	return c
}

// ofTheProgram reports whether a node belongs to the program. The core's own observers have names
// that a program cannot use.
func ofTheProgram(node string) bool {
	return node != reading && model.CheckName("node", node) == nil
}

func (s *Space) began(node string, kind space.NodeKind) {
	if !ofTheProgram(node) {
		return
	}
	s.running(kind.String(), node, node).since++
	s.ran = append(s.ran, node)
}

func (s *Space) ended(i space.RunInfo) {
	s.w.turns.exitIfAbandoned()
	if n := s.core.Stats().OutsideWrites; n != s.outside && len(i.Writes) > 0 {
		s.outside = n
		s.w.problem(Problem{Space: s.name, Kind: OutsideWrite, Node: i.Node, Text: fmt.Sprintf(
			"has written to %s, which it has not declared: reading there does not make it run. Declare the place with ComputeInto or Materialize, or in Writes or Envelope of a NodeSpec", places(i.Writes))})
	}
}

func places(ws []model.Write) string {
	var out []string
	for i := range ws {
		out = append(out, ws[i].Doc+ws[i].Path.String())
	}
	return strings.Join(out, ", ")
}

func (s *Space) violated(v space.Violation) {
	if s.w.opts.Lenient {
		return // found in the history of runs
	}
	s.w.problem(Problem{
		Space: s.name, Kind: NotIdempotent, Node: v.Node, Stream: v.Stream, Event: v.Event,
		Text: v.String() + ". It must follow from what it reads, and from nothing else: no clock but the event's, no random numbers, no order of a map, no variable that lasts from run to run",
	})
}

// noteError records the errors of nodes. Errors of handlers are kept until the receipt, which
// contains only their text.
func (s *Space) noteError(i space.ErrorInfo) {
	var violation *space.IdempotencyError
	if i.Transient || errors.As(i.Err, &violation) {
		return
	}
	if i.Node == "" {
		k := key{i.Stream, i.Event}
		s.failures[k] = i.Err
		if len(i.Stack) > 0 {
			s.panics[k] = i.Stack
		}
		return
	}
	s.w.problem(Problem{Space: s.name, Kind: NodeError, Node: i.Node, Err: i.Err, Stack: i.Stack})
}
