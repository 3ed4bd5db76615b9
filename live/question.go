package live

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/settlehq/settle/model"
)

// Endpoints of the service.
const (
	AskGet   = "get"
	AskWatch = "watch"
)

const (
	// DefaultTimeout is the timeout of a get that has none.
	DefaultTimeout = 15 * time.Second
	// MaxTimeout is the longest timeout of a get.
	MaxTimeout = 5 * time.Minute
	// Heartbeat is the longest time between two messages of a watch.
	Heartbeat = time.Second
)

// Get requests a document at the head of the log.
type Get struct {
	Space    string   `json:"space"`
	Document string   `json:"document"`
	Path     []string `json:"path,omitempty"` // within the document
	// Timeout is how long the request may wait for the document to be computed, or for a worker to take over
	// its space; 0 for DefaultTimeout.
	Timeout Duration `json:"timeout,omitzero"`
	// Trace is the W3C traceparent of the reader's span, "" for none.
	Trace string `json:"traceparent,omitzero"`
}

// Answer is a document at the head of the log.
type Answer struct {
	Space    string `json:"space"`
	Document string `json:"document"`
	// Revision is the log sequence of the commit that last changed the document; 0 if none ever did. Revisions
	// only grow.
	Revision uint64 `json:"revision"`
	// Found is false if the document, or the path within it, does not exist.
	Found bool            `json:"found"`
	Value json.RawMessage `json:"value,omitempty"`
	// Stale, if not "", is the reason why the value is out of date: a computation failed, or had not finished
	// in time.
	Stale string `json:"stale,omitempty"`
}

// Watch requests a document and all later values.
type Watch struct {
	Space    string `json:"space"`
	Document string `json:"document"`
	// From is the last value that the client has; it receives only newer ones. With the zero Known it
	// receives the present value, or Deleted if there is none.
	From Known `json:"from,omitzero"`
}

// Kind is the type of an Event.
type Kind string

// Kinds of Event.
const (
	Value     Kind = "value"     // the document's new value
	Deleted   Kind = "deleted"   // the document does not exist, or was deleted
	Beating   Kind = "heartbeat" // nothing has changed since Revision
	Stale     Kind = "stale"     // the value is out of date, for the reason in Event.Stale
	Current   Kind = "current"   // the value is up to date: delivered when that is first known, and after Stale
	Moved     Kind = "moved"     // the answering worker is leaving; resume at once, from Revision
	Again     Kind = "again"     // the watch ends within two seconds; resume it at once, from Revision
	Connected Kind = "connected" // of Client.Watch: a worker answers, for the first time or again
	Broken    Kind = "broken"    // of Client.Watch: no worker answers; the client keeps trying
	// Rewound: the store has gone back to an earlier state, and values delivered before may be lost. The
	// document's present value follows, whatever its revision.
	Rewound Kind = "rewound"
)

// Event is one message of a watch.
type Event struct {
	Kind Kind
	// Revision is that of the value or deletion; of Stale and Current, of the value that they describe; of
	// any other kind, the last one delivered.
	Revision uint64
	// Previous is the revision of the value that this one has replaced, 0 if there was none or it is not
	// known. If the last delivered revision is another one, values in between were skipped.
	Previous uint64
	// Print belongs to a value or deletion, see Known; otherwise it is "".
	Print string
	Data  []byte // JSON, of a Value
	Stale string // the reason, of Stale
	Err   error  // the reason, of Broken
}

// Duration is a time.Duration that is "15s" in JSON.
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = Duration(v)
	return err
}

func (g *Get) check() error {
	if g.Timeout == 0 {
		g.Timeout = Duration(DefaultTimeout)
	}
	if d := time.Duration(g.Timeout); d < 0 || d > MaxTimeout {
		return badRequest("the timeout is %s; it may be up to %s", d, MaxTimeout)
	}
	return checkNames(g.Space, g.Document)
}

func checkNames(space, doc string) error {
	err := model.CheckName("space", space)
	if err == nil {
		err = model.CheckName("document", doc)
	}
	if err != nil {
		return badRequest("%v", err)
	}
	return nil
}

func badRequest(format string, args ...any) error {
	return &model.ServiceError{Code: model.CodeBadRequest, Text: fmt.Sprintf(format, args...)}
}

// decode reads a request. It refuses unknown fields, since a misspelt one would otherwise be ignored.
func decode(request []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(request))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return badRequest(`the request does not have the expected JSON, such as {"space":"alice","document":"total"}: %v`, err)
	}
	return nil
}

// answer encodes the state of a document.
func (g *Get) answer(a model.DocumentState) Answer {
	v := a.Value.At(g.Path)
	out := Answer{Space: g.Space, Document: g.Document, Revision: a.Revision, Found: !v.IsAbsent(), Stale: a.Stale}
	if out.Found {
		out.Value = v.AppendJSON(nil)
	}
	return out
}

// serviceError gives an error its code.
func serviceError(err error) *model.ServiceError {
	if e, ok := errors.AsType[*model.ServiceError](err); ok {
		return e
	}
	code := model.CodeFailed
	switch {
	case errors.Is(err, model.ErrNoProgram):
		code = model.CodeNotFound
	case errors.Is(err, model.ErrTooLarge):
		code = model.CodeTooLarge
	case errors.Is(err, model.ErrElsewhere), errors.Is(err, model.ErrNoResponder), errors.Is(err, model.ErrStopped):
		code = model.CodeUnavailable
	}
	return &model.ServiceError{Code: code, Text: err.Error()}
}
