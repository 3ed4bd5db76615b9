package wire

import "strings"

const (
	inboxes = "_INBOX."
	// ownInboxes begins those of users that share theirs with no other: a name follows. See OwnInbox.
	ownInboxes = "_INBOX_"
	// imports begins the subjects on which a server passes answers on to another account.
	imports = "_R_."
	// gateways begins those on which it passes them on to another cluster: the hashes of cluster and server
	// precede the subject of the question.
	gateways = "_GR_."
	// flows begins those that end a server's wait for a consumer that is slow.
	flows = "$JS.FC."
)

// MayAnswer reports whether a process may answer to a subject that came with a message. The sender of a message
// chooses that subject, and the answer has the rights of the process: any other subject may be that of a stream, or
// of a request to the servers.
func MayAnswer(reply string) bool {
	if routed, is := strings.CutPrefix(reply, gateways); is {
		parts := strings.SplitN(routed, ".", 3)
		return len(parts) == 3 && MayAnswer(parts[2])
	}
	if own, is := strings.CutPrefix(reply, ownInboxes); is {
		name, _, more := strings.Cut(own, ".")
		return more && name != ""
	}
	return strings.HasPrefix(reply, inboxes) || strings.HasPrefix(reply, imports)
}

// OwnInbox returns the prefix of the inboxes of a user that shares them with no other.
func OwnInbox(user string) string { return ownInboxes + user }

// IsImported reports whether a subject to answer to leads into another account.
func IsImported(reply string) bool {
	if routed, is := strings.CutPrefix(reply, gateways); is {
		parts := strings.SplitN(routed, ".", 3)
		return len(parts) == 3 && IsImported(parts[2])
	}
	return strings.HasPrefix(reply, imports)
}

// isFlowControl reports whether a subject that came with a message is one of flow control.
func isFlowControl(reply string) bool { return strings.HasPrefix(reply, flows) }

// Answers reports whether a message is to be answered at a subject that came with it, and logs it if that subject
// is not an inbox. A message without one is not answered.
func (l *Link) Answers(reply, what, subject string) bool {
	if reply == "" {
		return false
	}
	may := MayAnswer(reply)
	if !may {
		l.Faults.Warn("a message is not answered: the subject to answer to is not an inbox, and the answer could change a stream",
			what, "message", what, "subject", subject, "reply", reply)
	}
	return may
}
