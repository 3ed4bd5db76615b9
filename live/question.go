package live

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/settlehq/settle/model"
)

// The questions of the service.
const (
	AskGet   = "get"
	AskWatch = "watch"
)

const (
	// DefaultTimeout is how long a get may take if it does not say.
	DefaultTimeout = 15 * time.Second
	// MaxTimeout bounds it.
	MaxTimeout = 5 * time.Minute
	// Heartbeat is how often one that watches hears something at least.
	Heartbeat = time.Second
)

// Get asks for a document at the head of the log.
type Get struct {
	Space    string   `json:"space"`
	Document string   `json:"document"`
	Path     []string `json:"path,omitempty"` // within the document
	// Timeout is how long it may wait for what has yet to be computed, or for somebody to
	// take the space over; 0 for DefaultTimeout.
	Timeout Duration `json:"timeout,omitzero"`
}

// Answer is a document as it is at the head of the log.
type Answer struct {
	Space    string `json:"space"`
	Document string `json:"document"`
	// Revision is the log sequence of the commit that made the document what it is; 0 if
	// none ever did. It only grows.
	Revision uint64 `json:"revision"`
	// Found is false if there is nothing at that place.
	Found bool            `json:"found"`
	Value json.RawMessage `json:"value,omitempty"`
	// Stale, if not "", is why the value is not what it should be: what it is computed from
	// did not come to rest in time, or fails.
	Stale string `json:"stale,omitempty"`
}

// Watch asks for a document and all that it becomes.
type Watch struct {
	Space    string `json:"space"`
	Document string `json:"document"`
	// From is the last value that is known: only newer ones are wanted. The zero Known
	// is for whatever there is, even if there is no document.
	From Known `json:"from,omitzero"`
}

// Kind is what an Event says.
type Kind string

// Kinds of Event.
const (
	Value     Kind = "value"     // the document is this now
	Deleted   Kind = "deleted"   // there is no such document, or not any more
	Beating   Kind = "heartbeat" // nothing has changed since Revision
	Stale     Kind = "stale"     // the value is not what it should be, and Event.Stale says why
	Current   Kind = "current"   // it is, or again; said once when it is first known, too
	Moved     Kind = "moved"     // who answers goes away; ask again at once, from Revision on
	Connected Kind = "connected" // of Client.Watch: somebody answers, or again
	Broken    Kind = "broken"    // of Client.Watch: nobody does, and it asks again
	// Rewound: the store has gone back to an earlier state, and what was delivered before may
	// never have been. The document as it is now follows, whatever its revision.
	Rewound Kind = "rewound"
)

// Event is one thing that happens to a watch.
type Event struct {
	Kind Kind
	// Revision of the value or deletion; of Stale and Current, of the one that is meant; of
	// anything else, of the last one.
	Revision uint64
	// Previous is the revision of the value that this one has replaced, 0 if there was none
	// or it is not known. If that is not the last one that was delivered, those between
	// have been left out.
	Previous uint64
	// Print is that of the value or deletion, see Known; "" of anything else.
	Print string
	Data  []byte // JSON, of a value
	Stale string // of Stale: why, as in Answer
	Err   error  // of Broken: why
}

// Duration is a time.Duration that is written as "15s" in JSON.
type Duration time.Duration

// MarshalText writes it.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads it.
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

// decode reads a question, and refuses fields that it does not have: a misspelt one would
// be taken for one that is not there.
func decode(request []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(request))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return badRequest(`the question is not the JSON that is expected, such as {"space":"alice","document":"total"}: %v`, err)
	}
	return nil
}

// answer is what a worker has found, as it travels.
func (g *Get) answer(a model.DocumentState) Answer {
	v := a.Value.At(g.Path)
	out := Answer{Space: g.Space, Document: g.Document, Revision: a.Revision, Found: !v.IsAbsent(), Stale: a.Stale}
	if out.Found {
		out.Value = v.AppendJSON(nil)
	}
	return out
}

// coded gives an error the code that it deserves.
func coded(err error) *model.ServiceError {
	if e, ok := errors.AsType[*model.ServiceError](err); ok {
		return e
	}
	code := model.CodeFailed
	switch {
	case errors.Is(err, model.ErrNoProgram):
		code = model.CodeNotFound
	case errors.Is(err, model.ErrTooLarge):
		code = model.CodeTooLarge
	case errors.Is(err, model.ErrElsewhere), errors.Is(err, model.ErrNobody), errors.Is(err, model.ErrStopped):
		code = model.CodeUnavailable
	}
	return &model.ServiceError{Code: code, Text: err.Error()}
}
