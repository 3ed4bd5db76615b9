package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// The table has each answer of the server and its meaning for the attempt. Moving a code to another line
// changes what is retried and what is given up.
func TestQ20_Answers(t *testing.T) {
	tests := []struct {
		code        server.ErrorIdentifier
		description string
		want        outcome
		seq         uint64
	}{
		{server.JSStreamWrongLastSequenceErrF, "wrong last sequence: 17", Moved, 17},
		{server.JSStreamWrongLastSequenceErrF, "wrong last sequence: 0", Moved, 0},
		{server.JSStreamWrongLastSequenceConstantErr, "wrong last sequence", Busy, 0},
		{server.JSStreamStoreFailedF, "maximum messages per subject exceeded", Taken, 0},
		{server.JSStreamStoreFailedF, "maximum messages exceeded", Full, 0},
		{server.JSStreamStoreFailedF, "maximum bytes exceeded", Full, 0},
		{server.JSStreamStoreFailedF, "message too large", TooLarge, 0},
		{server.JSStreamStoreFailedF, "store is closed", Unclear, 0},
		{server.JSStreamMessageExceedsMaximumErr, "message size exceeds maximum allowed", TooLarge, 0},
		{server.JSStreamHeaderExceedsMaximumErr, "header size exceeds maximum allowed of 64k", TooLarge, 0},
		{server.JSAccountResourcesExceededErr, "resource limits exceeded for account", Full, 0},
		{server.JSInsufficientResourcesErr, "insufficient resources", Full, 0},
		{server.JSStorageResourcesExceededErr, "insufficient storage resources available", Full, 0},
		{server.JSMemoryResourcesExceededErr, "insufficient memory resources available", Full, 0},
		{server.JSStreamSealedErr, "invalid operation on sealed stream", Full, 0},
		{server.JSClusterNotAvailErr, "JetStream system temporarily unavailable", Unavailable, 0},
		{server.JSClusterNotLeaderErr, "JetStream cluster can not handle request", Unavailable, 0},
		{server.JSStreamOfflineErr, "stream is offline", Unavailable, 0},
		{server.JSStreamTooManyRequests, "too many requests", Unavailable, 0},
		{server.JSNotEnabledErr, "JetStream not enabled", Unavailable, 0},
		{server.JSNotEnabledForAccountErr, "JetStream not enabled for account", Unavailable, 0},
		{server.JSStreamSequenceNotMatchErr, "expected stream sequence does not match", Unclear, 0},
		{server.JSStreamNotFoundErr, "stream not found", Unclear, 0},
		{60000, "an error of a future server", Unclear, 0},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%d %s", test.code, test.description), func(t *testing.T) {
			body, err := json.Marshal(map[string]any{
				"error":  server.ApiError{Code: 400, ErrCode: uint16(test.code), Description: test.description},
				"stream": "SETTLE_LOG_0", "seq": 0,
			})
			if err != nil {
				t.Fatal(err)
			}
			a := readAnswer(&nats.Msg{Data: body}, "SETTLE_LOG_0")
			if a.Outcome != test.want || a.Seq != test.seq {
				t.Errorf("got %v %d, want %v %d", a.Outcome, a.Seq, test.want, test.seq)
			}
			if a.Reason == "" {
				t.Error("the answer has no reason")
			}
		})
	}
}

func TestAcknowledgements(t *testing.T) {
	tests := []struct {
		data   string
		want   outcome
		seq    uint64
		stream string
	}{
		{`{"stream":"SETTLE_LOG_0", "seq":7}`, Stored, 7, ""},
		{`{"stream":"SETTLE_LOG_0", "domain":"hub", "seq":18446744073709551615}`, Stored, 1<<64 - 1, ""},
		{`{"stream":"S","seq":7,"duplicate": true}`, Stored, 7, ""},
		{`{"seq":7,"stream":"S"}`, Stored, 7, ""},
		{`{"stream":"S","seq":0}`, Unclear, 0, ""},
		{`{"stream":"S"}`, Unclear, 0, ""},
		{`{}`, Unclear, 0, ""},
		{`null`, Unclear, 0, ""},
		{`{"stream":`, Unclear, 0, ""},
		{`+ACK`, Unclear, 0, ""},
		{`{"stream":"SETTLE_LANE_7", "seq":7}`, Stored, 7, "SETTLE_LANE_7"},
		{`{"seq":7,"stream":"SETTLE_LANE_7"}`, Stored, 7, "SETTLE_LANE_7"},
		{`{"stream":"SETTLE_LANE_0", "seq":7}`, Unclear, 0, "SETTLE_LANE_7"},
		{`{"stream":"SETTLE_LANE_70", "seq":7}`, Unclear, 0, "SETTLE_LANE_7"},
		{`{"stream":"SETTLE_LANE_", "seq":7}`, Unclear, 0, "SETTLE_LANE_7"},
		{`{"seq":7}`, Unclear, 0, "SETTLE_LANE_7"},
	}
	for _, test := range tests {
		if a := readAnswer(&nats.Msg{Data: []byte(test.data)}, test.stream); a.Outcome != test.want || a.Seq != test.seq {
			t.Errorf("%s: got %v %d, want %v %d", test.data, a.Outcome, a.Seq, test.want, test.seq)
		}
	}
}

func TestAnswersThatAreOnlyAHeader(t *testing.T) {
	for status, want := range map[string]outcome{"503": Unavailable, "408": Unclear, "": Unclear} {
		if a := readAnswer(&nats.Msg{Header: nats.Header{"Status": {status}}}, "S"); a.Outcome != want {
			t.Errorf("status %q: got %v, want %v", status, a.Outcome, want)
		}
	}
}

func TestMessagesThatWereNotSent(t *testing.T) {
	for err, want := range map[error]outcome{
		nats.ErrMaxPayload:           TooLarge,
		nats.ErrReconnectBufExceeded: Unavailable,
		errors.New("broken pipe"):    Unclear,
	} {
		if a := notSentAnswer(err); a.Outcome != want {
			t.Errorf("%v: got %v, want %v", err, a.Outcome, want)
		}
	}
}

func TestServerVersions(t *testing.T) {
	for version, ok := range map[string]bool{
		"2.14.4": true, "2.14.10": true, "2.15.0": true, "2.15.2-beta.1": true, "3.0.0": true,
		"2.14.3": false, "2.14.4-RC.1": true, "2.9.25": false, "1.4.1": false, "": false, "latest": false,
	} {
		if err := CheckVersion(version); (err == nil) != ok {
			t.Errorf("%q: %v", version, err)
		}
	}
}
