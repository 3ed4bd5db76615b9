package runs

import (
	"testing"

	"github.com/settlehq/settle/model"
)

// What a performer has reported about a call is found, also after a reset, when the key of the call is another one, and is gone with the call.
func TestProgress_IsFoundByTheCallsThatARunWaitsFor(t *testing.T) {
	t.Parallel()
	restarts(t, func(t *testing.T, restart bool) {
		w, _ := unstable(t, restart, "    a = inc(n)\n    b = inc(a)\n    return [a, b]")
		read := func(doc string) (model.Value, error) { return w.s.Value(doc), nil }
		want := func(want string) {
			t.Helper()
			s, err := Inspect("r", read)
			if err != nil || len(s.Waiting) != 1 {
				t.Fatalf("%+v %v", s, err)
			}
			v, err := s.Progress("s", &s.Waiting[0], read)
			if got := v.String(); err != nil || v.IsAbsent() != (want == "") || want != "" && got != want {
				t.Errorf("got %s, want %q, %v", got, want, err)
			}
		}
		report := func(key, progress string) {
			t.Helper()
			w.sent("inc", "", `{"key":"`+key+`","progress":`+progress+`}`)
		}
		w.start("r", "{}")
		want("")
		report("s/r/0/0", `{"frame":7}`)
		want(`{"frame":7}`)
		_, task, _ := w.task()
		w.end("inc", task)
		want("")
		w.send(StreamReset, "", `{"run":"r","step":1}`)
		want("")
		report("s/r/g1/0/0", `8`)
		want(`8`)
		w.perform()
	})
}
