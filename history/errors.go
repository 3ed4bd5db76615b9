package history

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// MissingError reports that an event is not known.
type MissingError struct {
	Space, Stream, Event string
	// Minted is set if the id is one that Settle generates for sends of handlers.
	Minted bool
	// Receipt is set if only the receipt is missing.
	Receipt bool
}

func (e *MissingError) Error() string {
	where := "any lane"
	if e.Space != "" {
		where = "the lane of space " + e.Space
	}
	if e.Stream != "" {
		where += ", stream " + e.Stream
	}
	if e.Receipt {
		return fmt.Sprintf("there is no receipt of event %s in the log of space %s, stream %s: it waits, or was never sent; `settle tree %s` shows which", e.Event, e.Space, e.Stream, e.Event)
	}
	if e.Minted {
		return fmt.Sprintf("there is no event %s in %s, and no commit of its origin has sent it (yet); check the id and the deployment (bus.Config.Prefix, bus.Config.Context)", e.Event, where)
	}
	return fmt.Sprintf("there is no event %s in %s; check the id and the space (both count capitals), the deployment (bus.Config.Prefix, bus.Config.Context), and whether the send was acknowledged, not longer ago than lanes remember", e.Event, where)
}

// AmbiguousError reports that several events have the id.
type AmbiguousError struct {
	Event string
	Found []EventRef
}

func (e *AmbiguousError) Error() string {
	var list []string
	for _, r := range e.Found {
		list = append(list, r.Space+"/"+r.Stream)
	}
	which := "the space and the stream"
	if e.oneSpace() {
		which = "the stream"
	}
	return fmt.Sprintf("%d events have the id %s: %s; select one by %s", len(e.Found), e.Event, strings.Join(list, ", "), which)
}

func (e *AmbiguousError) oneSpace() bool {
	return !slices.ContainsFunc(e.Found, func(r EventRef) bool { return r.Space != e.Found[0].Space })
}

// ErrTooMany reports that a tree has more events than a wait supports.
var ErrTooMany = errors.New("the tree has too many events to wait for")
