package bus

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Each answer of the server and what it says about the attempt. A code that moves
// to another line here changes what is retried and what is given up.
func TestQ20_Answers(t *testing.T) {
	tests := []struct {
		code        server.ErrorIdentifier
		description string
		want        outcome
		seq         uint64
	}{
		{server.JSStreamWrongLastSequenceErrF, "wrong last sequence: 17", moved, 17},
		{server.JSStreamWrongLastSequenceErrF, "wrong last sequence: 0", moved, 0},
		{server.JSStreamWrongLastSequenceConstantErr, "wrong last sequence", busy, 0},
		{server.JSStreamStoreFailedF, "maximum messages per subject exceeded", taken, 0},
		{server.JSStreamStoreFailedF, "maximum messages exceeded", full, 0},
		{server.JSStreamStoreFailedF, "maximum bytes exceeded", full, 0},
		{server.JSStreamStoreFailedF, "message too large", tooLarge, 0},
		{server.JSStreamStoreFailedF, "store is closed", unclear, 0},
		{server.JSStreamMessageExceedsMaximumErr, "message size exceeds maximum allowed", tooLarge, 0},
		{server.JSStreamHeaderExceedsMaximumErr, "header size exceeds maximum allowed of 64k", tooLarge, 0},
		{server.JSAccountResourcesExceededErr, "resource limits exceeded for account", full, 0},
		{server.JSInsufficientResourcesErr, "insufficient resources", full, 0},
		{server.JSStorageResourcesExceededErr, "insufficient storage resources available", full, 0},
		{server.JSMemoryResourcesExceededErr, "insufficient memory resources available", full, 0},
		{server.JSStreamSealedErr, "invalid operation on sealed stream", full, 0},
		{server.JSClusterNotAvailErr, "JetStream system temporarily unavailable", unavailable, 0},
		{server.JSClusterNotLeaderErr, "JetStream cluster can not handle request", unavailable, 0},
		{server.JSStreamOfflineErr, "stream is offline", unavailable, 0},
		{server.JSStreamTooManyRequests, "too many requests", unavailable, 0},
		{server.JSNotEnabledErr, "JetStream not enabled", unavailable, 0},
		{server.JSNotEnabledForAccountErr, "JetStream not enabled for account", unavailable, 0},
		{server.JSStreamSequenceNotMatchErr, "expected stream sequence does not match", unclear, 0},
		{server.JSStreamNotFoundErr, "stream not found", unclear, 0},
		{60000, "an error of a server to come", unclear, 0},
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
			a := readAnswer(&nats.Msg{Data: body})
			if a.outcome != test.want || a.seq != test.seq {
				t.Errorf("got %v %d, want %v %d", a.outcome, a.seq, test.want, test.seq)
			}
			if a.why == "" {
				t.Error("the answer does not say why")
			}
		})
	}
}

func TestAcknowledgements(t *testing.T) {
	tests := []struct {
		data string
		want outcome
		seq  uint64
	}{
		{`{"stream":"SETTLE_LOG_0", "seq":7}`, stored, 7},
		{`{"stream":"SETTLE_LOG_0", "domain":"hub", "seq":18446744073709551615}`, stored, 1<<64 - 1},
		{`{"stream":"S","seq":7,"duplicate": true}`, stored, 7},
		{`{"seq":7,"stream":"S"}`, stored, 7},
		{`{"stream":"S","seq":0}`, unclear, 0},
		{`{"stream":"S"}`, unclear, 0},
		{`{}`, unclear, 0},
		{`null`, unclear, 0},
		{`{"stream":`, unclear, 0},
		{`+ACK`, unclear, 0},
	}
	for _, test := range tests {
		if a := readAnswer(&nats.Msg{Data: []byte(test.data)}); a.outcome != test.want || a.seq != test.seq {
			t.Errorf("%s: got %v %d, want %v %d", test.data, a.outcome, a.seq, test.want, test.seq)
		}
	}
}

func TestAnswersThatAreOnlyAHeader(t *testing.T) {
	for status, want := range map[string]outcome{"503": unavailable, "408": unclear, "": unclear} {
		if a := readAnswer(&nats.Msg{Header: nats.Header{"Status": {status}}}); a.outcome != want {
			t.Errorf("status %q: got %v, want %v", status, a.outcome, want)
		}
	}
}

func TestMessagesThatWereNotSent(t *testing.T) {
	for err, want := range map[error]outcome{
		nats.ErrMaxPayload:           tooLarge,
		nats.ErrReconnectBufExceeded: unavailable,
		errors.New("broken pipe"):    unclear,
	} {
		if a := notSentAnswer(err); a.outcome != want {
			t.Errorf("%v: got %v, want %v", err, a.outcome, want)
		}
	}
}

func TestServerVersions(t *testing.T) {
	for version, ok := range map[string]bool{
		"2.14.4": true, "2.14.10": true, "2.15.0": true, "2.15.2-beta.1": true, "3.0.0": true,
		"2.14.3": false, "2.14.4-RC.1": true, "2.9.25": false, "1.4.1": false, "": false, "latest": false,
	} {
		if err := checkVersion(version); (err == nil) != ok {
			t.Errorf("%q: %v", version, err)
		}
	}
}
