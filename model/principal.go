package model

import (
	"fmt"
	"strings"
)

// The id of an event that a principal has sent is "<principal>=<id>", with the id that the principal has chosen: two
// principals that choose the same id have two events. No name and no id that a client chooses contains a '=', and an
// event that was sent without a principal has its id alone (docs/adr/0042).
const principalMark = "="

// EventIDOf returns the id of the event that a principal sends under an id, which is the id itself for the
// principal "", a program that needs none.
func EventIDOf(principal, id string) string {
	if principal == "" {
		return id
	}
	return principal + principalMark + id
}

// CutPrincipal is the inverse of EventIDOf.
func CutPrincipal(event string) (principal, id string) {
	if principal, id, ok := strings.Cut(event, principalMark); ok {
		return principal, id
	}
	return "", event
}

// Operator is the principal in whose name users of the role operator, and of those that are trusted with more, send and read if
// they ask for it. Rules about access do not concern it. The permissions of users outside the account of the streams do not
// cover it, and no token stands for it.
const Operator = "operator"

// CheckPrincipal returns an error unless a name can be that of a principal which rules concern.
func CheckPrincipal(name string) error {
	if name == Operator {
		return fmt.Errorf("principal %s: the name is that of operators, which may send and read everything; use another one", name)
	}
	return CheckName("principal", name)
}

// By returns the principal that has sent the event, or has sent what was redriven; "" if there is none, and for what
// spaces and the system send.
func (e *Event) By() string { return principalOf(e.ID) }

// By is Event.By.
func (m *Message) By() string { return principalOf(m.ID) }

func principalOf(event string) string {
	principal, _ := CutPrincipal(event)
	return principal
}

// IsMinted reports whether only the system gives out an id: to what a space sends, to notices, and to what is redriven.
// Events under such ids have subjects to which no client may publish.
func IsMinted(event string) bool { return strings.Contains(event, mintedMark) }

// IsChosen reports whether a client has chosen the id of an event, or of the event that was redriven as this one. Everything else
// is sent by a space, a timer, a job or a worker.
func IsChosen(event string) bool { return !IsMinted(FirstID(event)) }

// mintedMark is in every id that Settle mints, and in no other.
const mintedMark = ":"

// Plain returns the message as a client can send it: it has no position, no term and no depth, and is no tombstone. Only
// the system says such things of an event, under an id that it has minted.
func (m Message) Plain() Message {
	m.Position, m.Term, m.PrevTerm, m.ReplayKey, m.Depth, m.Invalid = 0, 0, 0, 0, 0, ""
	return m
}
