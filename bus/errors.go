package bus

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
	// stored: the message is in the stream.
	stored outcome = iota
	// moved: the last sequence is not the expected one.
	moved
	// taken: the subject holds its maximum of messages. On R3 the other message may
	// still be on its way and can yet be lost, so this proves nothing.
	taken
	// busy: another message is on its way to the same subject.
	busy
	// full: the stream, the account or the server has no room.
	full
	// tooLarge: this message can never be stored.
	tooLarge
	// unavailable: no server could have stored it.
	unavailable
	// forbidden: the server has dropped the message, because the user may not publish there.
	forbidden
	// unclear: the server has answered, and the answer does not show whether it stored
	// the message.
	unclear
)

var outcomeNames = [...]string{"stored", "moved", "taken", "busy", "full", "too large", "unavailable", "forbidden", "unclear"}

func (o outcome) String() string { return outcomeNames[o] }

// answer is one answer of the server to an attempt.
type answer struct {
	outcome outcome
	// seq is where the message was stored, or the present last sequence if it moved.
	seq uint64
	// why is the server's own text, for logs and errors.
	why string
}

// readAnswer reads an acknowledgement or a refusal.
func readAnswer(m *nats.Msg) answer {
	if len(m.Data) == 0 {
		return readStatus(m.Header)
	}
	if seq, ok := storedSeq(m.Data); ok {
		return answer{outcome: stored, seq: seq}
	}
	var ack struct {
		Error *jetstream.APIError `json:"error"`
		Seq   uint64              `json:"seq"`
	}
	switch err := json.Unmarshal(m.Data, &ack); {
	case err != nil:
		return answer{outcome: unclear, why: fmt.Sprintf("unreadable acknowledgement: %v", err)}
	case ack.Error != nil:
		return refusal(ack.Error)
	case ack.Seq == 0:
		return answer{outcome: unclear, why: "acknowledgement without a sequence"}
	}
	return answer{outcome: stored, seq: ack.Seq}
}

// storedSeq reads the usual acknowledgement, {"stream":"X", "seq":7}, which is
// most of what a busy bus receives.
func storedSeq(data []byte) (uint64, bool) {
	const key = `"seq":`
	if !bytes.HasPrefix(data, []byte(`{"stream":`)) {
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

// readStatus reads an answer that is only a header. 503 comes from the server that
// this process is connected to: the subject has no subscriber, so the message was not delivered.
func readStatus(h nats.Header) answer {
	status := header(h, headerStatus)
	if status == "503" {
		return answer{outcome: unavailable, why: "no stream listens on the subject"}
	}
	return answer{outcome: unclear, why: "status " + status + " " + header(h, headerDescription)}
}

// refusal classifies an error of the server.
func refusal(e *jetstream.APIError) answer {
	a := answer{why: fmt.Sprintf("%s (%d)", e.Description, e.ErrorCode)}
	switch e.ErrorCode {
	case codeWrongLastSequence:
		a.outcome, a.seq = moved, standing(e.Description)
	case codeWrongLastSequenceConstant:
		a.outcome = busy
	case codeStreamStoreFailed:
		a.outcome = storeFailure(e.Description)
	case codeMessageExceedsMaximum, codeHeaderExceedsMaximum:
		a.outcome = tooLarge
	case codeAccountResourcesExceeded, codeInsufficientResources,
		codeStorageResourcesExceeded, codeMemoryResourcesExceeded,
		codeStreamSealed:
		a.outcome = full
	case codeClusterNotAvailable, codeClusterNotLeader, codeStreamOffline,
		codeStreamTooManyRequests, codeNotEnabled, codeNotEnabledForAccount:
		a.outcome = unavailable
	default:
		a.outcome = unclear
	}
	return a
}

// storeFailure reads the reason inside error 10077, which has one code for all.
func storeFailure(description string) outcome {
	switch {
	case strings.Contains(description, reasonMaxMsgsPerSubject):
		return taken
	case strings.Contains(description, reasonMaxMsgs), strings.Contains(description, reasonMaxBytes):
		return full
	case strings.Contains(description, reasonTooLarge):
		return tooLarge
	}
	return unclear
}

// standing reads N from "wrong last sequence: N".
func standing(description string) uint64 {
	_, n, _ := strings.Cut(description, ": ")
	seq, _ := strconv.ParseUint(n, 10, 64)
	return seq
}

// notSentAnswer classifies the error of a message that could not be passed to the connection. It is
// certain only if the client library refuses the message before writing anything.
func notSentAnswer(err error) answer {
	a := answer{outcome: unclear, why: err.Error()}
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		a.outcome = tooLarge
	case errors.Is(err, nats.ErrReconnectBufExceeded):
		a.outcome = unavailable
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

// apiError classifies an error of the JetStream API about a read.
func apiError(e *jetstream.APIError) error {
	switch e.ErrorCode {
	case codeNoMessageFound:
		return errNoMessage
	case codeStreamNotFound:
		return errNoStream
	case codeNotEnabledForAccount, codeNotEnabled:
		return fmt.Errorf("%w: %s (%d)", errNoJetStream, e.Description, e.ErrorCode)
	case codeClusterNotAvailable, codeClusterNotLeader, codeStreamOffline,
		codeStreamTooManyRequests, codeInsufficientResources:
		return fmt.Errorf("%w: %s (%d)", errTransient, e.Description, e.ErrorCode)
	}
	return fmt.Errorf("%s (%d)", e.Description, e.ErrorCode)
}

// Errors between the files of this package.
var (
	errNoMessage   = errors.New("no such message")
	errNoStream    = model.ErrNoStream
	errNoJetStream = errors.New("JetStream is not enabled for this account")
	// errTransient: another request may succeed.
	errTransient = errors.New("not available just now")
)

// tooLargeError explains model.ErrTooLarge to a reader.
func tooLargeError(what string, size, limit int) error {
	return fmt.Errorf("%s of %d bytes, headers included, where the server takes %d: %w", what, size, limit, model.ErrTooLarge)
}
