package faults

// Op labels what a request asks for.
type Op string

// The operations that can be made to fail.
const (
	OpAppend    Op = "append"
	OpSend      Op = "send"
	OpSave      Op = "save"   // of a document, a mark or a position
	OpStoreDead Op = "bury"   // of a dead letter
	OpRecord    Op = "record" // of a program or a rule

	OpAnnounce Op = "announce"
)

// Fault is the fate of one attempt.
type Fault int

const (
	// Deliver: nothing unusual.
	Deliver Fault = iota
	// DropRequest: the attempt never reaches the server.
	DropRequest
	// DropAck: the server executes the request, and its answer is lost.
	DropAck
	// Duplicate: the server receives the request twice.
	Duplicate
)

// Attempt is one try of a request.
type Attempt struct {
	Op      Op
	Subject string
	// Try numbers the attempts of a request from 1.
	Try int
}

// Func decides the fate of every attempt. It is called before a message is sent, from any goroutine. It may
// block the attempt, and with it everything that the goroutine would do next, such as repeating other
// requests.
type Func func(Attempt) Fault

// Of returns the fate of an attempt; a nil Func delivers everything.
func (f Func) Of(a Attempt) Fault {
	if f == nil {
		return Deliver
	}
	return f(a)
}
