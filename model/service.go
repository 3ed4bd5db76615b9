package model

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
)

// Service is a set of endpoints that a process serves, possibly alongside other processes. Names must satisfy
// CheckName.
type Service struct {
	Name, Description string
	Endpoints         []Endpoint
}

// Endpoint is one kind of request.
type Endpoint struct {
	Name, Description string
	// Answer returns the reply to a request. Its errors are sent to the requester; a *ServiceError unchanged,
	// any other with the code CodeFailed. Requests to one endpoint of one process are answered one after the
	// other, and may arrive twice.
	Answer func(request []byte) ([]byte, error)
	// Open, instead of Answer, accepts a request that is answered later or in several parts. It must not
	// block or call the bus; it may be called again while earlier answers are in progress. The outlet must be
	// closed.
	Open func(request []byte, to Outlet)
	// OpenBy, beside Open, accepts requests in the name of a principal: those to EndpointBy. The permissions of the servers say which
	// user may make them.
	OpenBy func(principal string, request []byte, to Outlet)
}

// EndpointBy returns where a principal makes the requests that an endpoint takes, which is the endpoint itself for the principal "".
func EndpointBy(endpoint, principal string) string {
	if principal == "" {
		return endpoint
	}
	return endpoint + "." + principal
}

// CutEndpoint is the inverse of EndpointBy. The error is that of the first name that is not valid.
func CutEndpoint(of string) (endpoint, principal string, err error) {
	endpoint, principal, named := strings.Cut(of, ".")
	err = CheckName("endpoint", endpoint)
	if named && err == nil {
		err = CheckName("principal", principal)
	}
	return endpoint, principal, err
}

// OwnEndpoint returns the name of the endpoint of one process: a prefix and its id, shortened if that is too long for a name.
func OwnEndpoint(prefix, id string) string {
	name := prefix + "-" + id
	if len(name) <= MaxNameLen {
		return name
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	return name[:MaxNameLen-17] + "-" + fmt.Sprintf("%016x", h.Sum64())
}

// Outlet sends the parts of an answer. It must not be used by several goroutines at a time.
type Outlet interface {
	// Send sends a part. Parts are not acknowledged: one may get lost, and is lost if the requester has gone.
	// Parts arrive in order. The error is ErrTooLarge, ErrStopped, or reports that nothing was sent.
	Send(Part) error
	// Gone is closed when a part that was sent found no listener. Only sending reveals that, and possibly
	// late: send a part regularly.
	Gone() <-chan struct{}
	// SensesGone reports whether Gone is closed at all. The servers pass the parts on to a requester in another account without a report
	// about it.
	SensesGone() bool
	// Close ends the answer.
	Close()
}

// Part is one message of an answer. If Err is set, it is the whole content.
type Part struct {
	Header map[string]string
	Data   []byte
	Err    *ServiceError
}

// ServiceError is the error answer of a service.
type ServiceError struct {
	Code int // as in HTTP
	Text string
}

// Codes of a ServiceError.
const (
	CodeBadRequest = 400
	CodeNotFound   = 404
	// CodeForbidden: the principal may not.
	CodeForbidden = 403
	// CodeConflict: not before an operator has decided something: its space is set aside.
	CodeConflict = 409
	CodeTooLarge = 413
	CodeFailed   = 500
	// CodeUnavailable: not now, or not by this process; retry.
	CodeUnavailable = 503
	// CodeTimeout: not within the given time; retry.
	CodeTimeout = 504
)

func (e *ServiceError) Error() string { return fmt.Sprintf("%s (%d)", e.Text, e.Code) }

// AsServiceError converts err to the form that is sent to the requester.
func AsServiceError(err error) *ServiceError {
	if e, ok := errors.AsType[*ServiceError](err); ok {
		return e
	}
	return &ServiceError{Code: CodeFailed, Text: err.Error()}
}

// ErrNoResponder reports that no process answers the request at the moment.
var ErrNoResponder = errors.New("no process answers")
