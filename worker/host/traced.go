package host

import (
	"time"

	"github.com/settlehq/settle/model"
)

// Spans begin spans of what a process does besides handling events. None of the functions may be nil.
type Spans struct {
	// Activate begins the span of the loading of a space, which began at a time, up to its takeover. cause is the event for which it
	// is loaded, if that is known. It returns the context of the span, and the function that ends it.
	Activate func(space string, began time.Time, cause model.Trace) (model.Trace, func(error))
	// Checkpoint begins the span of a save of a space. after is the newest commit in it. The function that it returns ends the span.
	Checkpoint func(space string, after model.Trace) func(documents int, err error)
	// Takeover records that a partition was taken over.
	Takeover func(partition int, took time.Duration)
}

// traced are the spans of one host. Its zero value traces nothing. All fields belong to the host's loop.
type traced struct {
	to    *Spans
	space string
	// cause is the first event of which the host has attribute.
	cause model.Trace
	// activation ends the span of the loading, nil before it has begun and after it has ended.
	activation func(error)
	loaded     bool
	// under is the context of that span, and commit that of the newest append.
	under, commit model.Trace
}

// attribute records an event for which the space may have been loaded.
func (t *traced) attribute(m *model.Message) {
	if t.to != nil && t.cause.Parent == "" {
		t.cause = m.Trace
	}
}

// entering begins the span of the loading, unless it has begun, and returns its context for the commit that ends it.
func (t *traced) entering(began time.Time) model.Trace {
	if t.to == nil || t.loaded {
		return model.Trace{}
	}
	if t.activation == nil {
		t.under, t.activation = t.to.Activate(t.space, began, t.cause)
	}
	return t.under
}

// entered ends the span of the loading: an error is why the space could not be loaded.
func (t *traced) entered(began time.Time, err error) {
	if t.to == nil || t.loaded {
		return
	}
	t.entering(began)
	t.activation(err)
	t.loaded, t.activation = true, nil
}

// saves begins the span of a save.
func (t *traced) saves() func(documents int, err error) {
	if t.to == nil {
		return func(int, error) {}
	}
	return t.to.Checkpoint(t.space, t.commit)
}
