package receipts

import (
	"fmt"

	"github.com/settlehq/settle/model"
)

// MaxCodeLen is the length of the largest code of a rejection.
const MaxCodeLen = 64

// Rejection is the error by which a handler declines an event: the request is understood, and the answer is no. Nothing that
// the handler wrote is kept, and the receipt, with the outcome Rejected, is the answer.
type Rejection struct {
	// Code tells callers' programs which rejection it is. It consists of letters, digits, '_', '-' and '.'.
	Code string
	// Message tells people.
	Message string
	// Data is whatever else the caller needs, absent if nothing.
	Data model.Value
}

// Reject returns a *Rejection as an error. If the code is not valid or the data cannot be encoded, it returns another error,
// which names what is wrong, and the event fails.
func Reject(code, message string, data any) error {
	if err := checkCode(code); err != nil {
		return err
	}
	r := &Rejection{Code: code, Message: message}
	if data == nil {
		return r
	}
	var err error
	if r.Data, err = model.Of(data); err != nil {
		return fmt.Errorf("data of rejection %s: %w", code, err)
	}
	return r
}

func checkCode(code string) error {
	if code == "" || len(code) > MaxCodeLen {
		return fmt.Errorf("code of a rejection: %q has %d bytes; use 1 to %d", code, len(code), MaxCodeLen)
	}
	for _, c := range []byte(code) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && c != '_' && c != '-' && c != '.' {
			return fmt.Errorf("code of a rejection: %q: use letters, digits, '_', '-' and '.'", code)
		}
	}
	return nil
}

func (r *Rejection) Error() string {
	if r.Message == "" {
		return r.Code
	}
	return r.Code + ": " + r.Message
}

// Reason returns why an event was not handled, in words: the error of its receipt, and before it the code if it was rejected.
func Reason(rc *model.Receipt) string {
	if r := RejectionOf(rc); r != nil {
		return r.Error()
	}
	return rc.Error
}

// RejectionOf returns the rejection in a receipt, nil if the event was not rejected.
func RejectionOf(rc *model.Receipt) *Rejection {
	if rc.Outcome != model.Rejected {
		return nil
	}
	return &Rejection{Code: rc.Code, Message: rc.Error, Data: rc.Result}
}
