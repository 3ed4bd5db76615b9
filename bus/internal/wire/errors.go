package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle/model"
)

// outcome is the meaning of the server's answer to one attempt to store a
// message. Only this file knows the server's codes.
type outcome int

const (
	// Stored: the message is in the stream.
	Stored outcome = iota
	// moved: the last sequence is not the expected one.
	Moved
	// taken: the subject holds its maximum of messages. On R3 the other message may
	// still be on its way and can yet be lost, so this proves nothing.
	Taken
	// busy: another message is on its way to the same subject.
	Busy
	// full: the stream, the account or the server has no room.
	Full
	// tooLarge: this message can never be stored.
	TooLarge
	// unavailable: no server could have stored it.
	Unavailable
	// forbidden: the server has dropped the message, because the user may not publish there.
	Forbidden
	// unclear: the server has answered, and the answer does not show whether it stored
	// the message.
	Unclear
)

var outcomeNames = [...]string{"stored", "moved", "taken", "busy", "full", "too large", "unavailable", "forbidden", "unclear"}

func (o outcome) String() string { return outcomeNames[o] }

// Answer is one answer of the server to an attempt.
type Answer struct {
	Outcome outcome
	// Seq is where the message was stored, or the present last sequence if it moved.
	Seq uint64
	// Reason is the server's own text, for logs and errors.
	Reason string
}

// readAnswer reads an acknowledgement or a refusal. An acknowledgement of another stream than the one that stores the message, if that is
// known, belongs to another message.
func readAnswer(m *nats.Msg, stream string) Answer {
	if len(m.Data) == 0 {
		return readStatus(m.Header)
	}
	if seq, ok := storedSeq(m.Data, stream); ok {
		return Answer{Outcome: Stored, Seq: seq}
	}
	var ack struct {
		Error  *jetstream.APIError `json:"error"`
		Stream string              `json:"stream"`
		Seq    uint64              `json:"seq"`
	}
	switch err := json.Unmarshal(m.Data, &ack); {
	case err != nil:
		return Answer{Outcome: Unclear, Reason: fmt.Sprintf("unreadable acknowledgement: %v", err)}
	case ack.Error != nil:
		return refusal(ack.Error)
	case stream != "" && ack.Stream != stream:
		return Answer{Outcome: Unclear, Reason: fmt.Sprintf("acknowledgement of stream %q, not of %s", ack.Stream, stream)}
	case ack.Seq == 0:
		return Answer{Outcome: Unclear, Reason: "acknowledgement without a sequence"}
	}
	return Answer{Outcome: Stored, Seq: ack.Seq}
}

// storedSeq reads the usual acknowledgement, {"stream":"X", "seq":7}, which is
// most of what a busy bus receives.
func storedSeq(data []byte, stream string) (uint64, bool) {
	const key = `"seq":`
	name, is := bytes.CutPrefix(data, []byte(`{"stream":"`))
	if !is || stream != "" && (!bytes.HasPrefix(name, []byte(stream)) || !bytes.HasPrefix(name[len(stream):], []byte{'"'})) {
		return 0, false
	}
	at := bytes.Index(data, []byte(key))
	if at < 0 {
		return 0, false
	}
	digits := data[at+len(key):]
	end := bytes.IndexAny(digits, ",}")
	if end < 0 {
		return 0, false
	}
	seq, err := strconv.ParseUint(string(bytes.TrimSpace(digits[:end])), 10, 64)
	return seq, err == nil && seq > 0
}

// readStatus reads an answer that is only a header. 503 comes from the server that this process is connected
// to: the subject has no subscriber, so the message was not delivered.
func readStatus(h nats.Header) Answer {
	status := Header(h, HeaderStatus)
	if status == "503" {
		return Answer{Outcome: Unavailable, Reason: "no stream listens on the subject"}
	}
	return Answer{Outcome: Unclear, Reason: "status " + status + " " + Header(h, HeaderDescription)}
}

// refusal classifies an error of the server.
func refusal(e *jetstream.APIError) Answer {
	a := Answer{Reason: fmt.Sprintf("%s (%d)", e.Description, e.ErrorCode)}
	switch e.ErrorCode {
	case codeWrongLastSequence:
		a.Outcome, a.Seq = Moved, lastSequence(e.Description)
	case codeWrongLastSequenceConstant:
		a.Outcome = Busy
	case codeStreamStoreFailed:
		a.Outcome = storeFailure(e.Description)
	case codeMessageExceedsMaximum, codeHeaderExceedsMaximum:
		a.Outcome = TooLarge
	case codeAccountResourcesExceeded, CodeInsufficientResources,
		codeStorageResourcesExceeded, codeMemoryResourcesExceeded,
		codeStreamSealed:
		a.Outcome = Full
	case codeClusterNotAvailable, codeClusterNotLeader, codeStreamOffline,
		codeStreamTooManyRequests, codeNotEnabled, codeNotEnabledForAccount:
		a.Outcome = Unavailable
	default:
		a.Outcome = Unclear
	}
	return a
}

// storeFailure reads the reason inside error 10077, which has one code for all.
func storeFailure(description string) outcome {
	switch {
	case strings.Contains(description, reasonMaxMsgsPerSubject):
		return Taken
	case strings.Contains(description, reasonMaxMsgs), strings.Contains(description, reasonMaxBytes):
		return Full
	case strings.Contains(description, reasonTooLarge):
		return TooLarge
	}
	return Unclear
}

// lastSequence reads N from "wrong last sequence: N".
func lastSequence(description string) uint64 {
	_, n, _ := strings.Cut(description, ": ")
	seq, _ := strconv.ParseUint(n, 10, 64)
	return seq
}

// notSentAnswer classifies the error of a message that could not be passed to the connection. It is
// certain only if the client library refuses the message before writing anything.
func notSentAnswer(err error) Answer {
	a := Answer{Outcome: Unclear, Reason: err.Error()}
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		a.Outcome = TooLarge
	case errors.Is(err, nats.ErrReconnectBufExceeded):
		a.Outcome = Unavailable
	}
	return a
}

// forbiddenSubject returns the subject whose message was dropped because this user may not
// publish there, "" for any other error of the connection.
func forbiddenSubject(err error) string {
	const begin = `Permissions Violation for Publish to "`
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return ""
	}
	_, rest, _ := strings.Cut(err.Error(), begin)
	subject, _, _ := strings.Cut(rest, `"`)
	return subject
}

// APIError classifies an error of the JetStream API about a read.
func APIError(e *jetstream.APIError) error {
	switch e.ErrorCode {
	case codeNoMessageFound:
		return ErrNoMessage
	case codeStreamNotFound:
		return ErrNoStream
	case codeNotEnabledForAccount, codeNotEnabled:
		return fmt.Errorf("%w: %s (%d)", ErrNoJetStream, e.Description, e.ErrorCode)
	case codeClusterNotAvailable, codeClusterNotLeader, codeStreamOffline,
		codeStreamTooManyRequests, CodeInsufficientResources:
		return fmt.Errorf("%w: %s (%d)", ErrTransient, e.Description, e.ErrorCode)
	}
	return fmt.Errorf("%s (%d)", e.Description, e.ErrorCode)
}

// Errors between the files of this package.
var (
	ErrNoMessage   = errors.New("no such message")
	ErrNoStream    = model.ErrNoStream
	ErrNoJetStream = errors.New("JetStream is not enabled for this account")
	// ErrTransient: another request may succeed.
	ErrTransient = errors.New("not available just now")
)

// TooLargeError explains model.ErrTooLarge to a reader.
func TooLargeError(what string, size, limit int) error {
	return fmt.Errorf("%s of %d bytes, headers included, where the server takes %d: %w", what, size, limit, model.ErrTooLarge)
}
