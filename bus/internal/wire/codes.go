package wire

import (
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Error codes of the JetStream API that matter here, under their names in
// nats-server, which this package does not link: a client would link it too. TestQ20_Answers compares
// each number with the server's.
const (
	codeAccountResourcesExceeded  jetstream.ErrorCode = 10002
	CodeClusterNoPeers            jetstream.ErrorCode = 10005
	codeClusterNotAvailable       jetstream.ErrorCode = 10008
	codeClusterNotLeader          jetstream.ErrorCode = 10009
	CodeInsufficientResources     jetstream.ErrorCode = 10023
	codeMemoryResourcesExceeded   jetstream.ErrorCode = 10028
	codeNoMessageFound                                = jetstream.JSErrCodeMessageNotFound
	codeNotEnabledForAccount                          = jetstream.JSErrCodeJetStreamNotEnabledForAccount
	codeStorageResourcesExceeded  jetstream.ErrorCode = 10047
	codeMessageExceedsMaximum                         = jetstream.JSErrCodeStreamMessageExceedsMaximum
	codeStreamNotFound                                = jetstream.JSErrCodeStreamNotFound
	CodeStreamSubjectOverlap      jetstream.ErrorCode = 10065
	codeWrongLastSequence                             = jetstream.JSErrCodeStreamWrongLastSequence
	CodeReplicasNotSupported      jetstream.ErrorCode = 10074
	codeNotEnabled                                    = jetstream.JSErrCodeJetStreamNotEnabled
	codeStreamStoreFailed         jetstream.ErrorCode = 10077
	codeHeaderExceedsMaximum      jetstream.ErrorCode = 10097
	codeStreamSealed              jetstream.ErrorCode = 10109
	codeStreamOffline             jetstream.ErrorCode = 10118
	codeWrongLastSequenceConstant                     = jetstream.JSErrCodeStreamWrongLastSequenceConstant
	codeStreamTooManyRequests     jetstream.ErrorCode = 10167
)

// The error codeStreamStoreFailed has its reason only in its text.
const (
	reasonMaxMsgs           = "maximum messages exceeded"
	reasonMaxBytes          = "maximum bytes exceeded"
	reasonMaxMsgsPerSubject = "maximum messages per subject exceeded"
	reasonTooLarge          = "message too large"
)

// storedMessage is a message as the JetStream API returns it.
type storedMessage struct {
	Subject  string    `json:"subject"`
	Sequence uint64    `json:"seq"`
	Header   []byte    `json:"hdrs"`
	Data     []byte    `json:"data"`
	Time     time.Time `json:"time"`
}
