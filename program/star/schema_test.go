package star

import (
	"strings"
	"testing"
)

// Later versions of Settle may add fields to notices, so a schema of the stream undelivered allows those that it does not name, at the top; another one does not.
func TestSchema_OfNoticesAllowsFurtherFields(t *testing.T) {
	s := newStage(t, compiled(t, `
def undelivered(n):
    return n.outcome + " " + n.to
schema = {"event": str, "to": str, "stream": str, "outcome": str, "payload": {"n": int}}
handle("undelivered", undelivered, payload = schema)
handle("other", undelivered, payload = schema)
`).Space())
	notice := map[string]any{"event": "a:1:1:0", "to": "b", "stream": "s", "outcome": "refused", "payload": map[string]any{"n": 1}, "added": 1}
	if rc := s.send("undelivered", notice); rc.Result.String() != `"refused b"` {
		t.Errorf("%+v", rc)
	}
	if rc := s.send("other", notice); !strings.Contains(rc.Error, "payload.added is not expected") {
		t.Errorf("%+v", rc)
	}
	notice["payload"] = map[string]any{"n": 1, "more": 1}
	if rc := s.send("undelivered", notice); !strings.Contains(rc.Error, "payload.payload.more is not expected") {
		t.Errorf("%+v", rc)
	}
}
