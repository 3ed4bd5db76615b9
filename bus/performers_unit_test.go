package bus

import (
	"fmt"
	"testing"
)

// A performer that has not heard in time that its last answer counts learns it when it sends it again. Another answer to the
// same offer is late, and so is that of others.
func TestPerformers_TheLastAnswerOnceMoreGetsTheSameReply(t *testing.T) {
	t.Parallel()
	var l lasts
	l.remember("t1", []byte(`{"out":1}`), []byte(`{"ok":true}`))
	for _, c := range []struct{ token, answer, want string }{
		{"t1", `{"out":1}`, `{"ok":true}`},
		{"t1", `{"out":1}`, `{"ok":true}`},
		{"t1", `{"out":2}`, string(over)},
		{"t1", `{"heartbeat":true}`, string(over)},
		{"t2", `{"out":1}`, string(over)},
	} {
		if got := string(l.of(c.token, []byte(c.answer))); got != c.want {
			t.Errorf("%s to %s: %s, want %s", c.answer, c.token, got, c.want)
		}
	}
	for i := range 2 * maxLasts {
		l.remember(fmt.Sprint("m", i), nil, nil)
	}
	if len(l.replies) != maxLasts || len(l.order) != maxLasts || string(l.of("t1", []byte(`{"out":1}`))) != string(over) {
		t.Errorf("%d are remembered", len(l.replies))
	}
}
