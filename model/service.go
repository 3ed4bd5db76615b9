package model

import (
	"errors"
	"fmt"
)

// Service is a set of questions that a process answers, beside others that may do the
// same. Names are as CheckName has them.
type Service struct {
	Name, Description string
	Endpoints         []Endpoint
}

// Endpoint is one question.
type Endpoint struct {
	Name, Description string
	// Answer gets a request and returns the reply. Its errors reach the one who asked;
	// a *ServiceError as it is, any other with the code CodeFailed. Requests of one
	// process to one endpoint come one after the other, and may come twice.
	Answer func(request []byte) ([]byte, error)
	// Open, instead of Answer, takes a question that is answered later, or by many parts.
	// It must return soon, and not call the bus; it is called again while the answer goes
	// on. The outlet must be closed.
	Open func(request []byte, to Outlet)
}

// Outlet is where the parts of an answer go. It may be used by one goroutine at a time.
type Outlet interface {
	// Say sends a part. Nobody acknowledges it: it may get lost, and it is lost if nobody
	// listens. Parts that arrive do so in order. The error is ErrTooLarge, ErrStopped, or
	// says that nothing was sent.
	Say(Part) error
	// Gone is closed when something that was said had nobody to listen to it any more. That
	// may be noticed late, but is: keep saying something.
	Gone() <-chan struct{}
	// Close ends the answer.
	Close()
}

// Part is one message of an answer. Err, if there is one, is all that it says.
type Part struct {
	Header map[string]string
	Data   []byte
	Err    *ServiceError
}

// ServiceError is what a service says instead of an answer.
type ServiceError struct {
	Code int // as in HTTP
	Text string
}

// Codes of a ServiceError.
const (
	CodeBadRequest = 400
	CodeNotFound   = 404
	CodeTooLarge   = 413
	CodeFailed     = 500
	// CodeUnavailable: not now, or not here; ask again.
	CodeUnavailable = 503
	// CodeTimeout: not in the time that there was; ask again.
	CodeTimeout = 504
)

func (e *ServiceError) Error() string { return fmt.Sprintf("%s (%d)", e.Text, e.Code) }

// AsServiceError is err as it travels to the one who asked.
func AsServiceError(err error) *ServiceError {
	if e, ok := errors.AsType[*ServiceError](err); ok {
		return e
	}
	return &ServiceError{Code: CodeFailed, Text: err.Error()}
}

// ErrNobody: nobody answers that question at the moment.
var ErrNobody = errors.New("nobody answers")
