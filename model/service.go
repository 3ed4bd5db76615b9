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
