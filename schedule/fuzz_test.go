package schedule

import (
	"testing"

	"github.com/settlehq/settle/model"
)

// A definition from outside is refused, or it is usable and comes back from its stored form.
func FuzzReadDefinition(f *testing.F) {
	for _, seed := range []string{
		`{"workflow":"w","cron":"0 3 * * *","zone":"Europe/Berlin","jitter":"5m","overlap":"queue","queue":3,"catch_up":"7d","time_as":"day"}`,
		`{"workflow":"w","every":"90s","start":"2026-01-01T00:00:00+02:00","end":"2027-01-01T00:00:00Z","max":5,"catch_up_max":3}`,
		`{"workflow":"w","cron":"*/5 0-6,22 L JAN-MAR FRI#2"}`, `{"every":5}`, `[]`, `{"workflow":"w","every":"-1s"}`,
	} {
		f.Add(seed, noon)
	}
	f.Fuzz(func(t *testing.T, text string, now int64) {
		v, err := model.ParseValue([]byte(text))
		if err != nil || now < 0 || now > 253_000_000_000_000 {
			return
		}
		d, err := ReadDefinition(v)
		if err != nil {
			return
		}
		s, err := New("s", "n", d, now)
		if err != nil {
			t.Fatalf("%s is accepted: %v", v, err)
		}
		if s.Next != 0 && (s.Next <= now || s.Due < s.Next) {
			t.Fatalf("%s: after %d comes %d, due at %d", v, now, s.Next, s.Due)
		}
		stored, err := s.Value()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Read("s", "n", stored, model.Value{})
		if err != nil || again.Definition != s.Definition || again.Next != s.Next {
			t.Fatalf("%s comes back as %+v, %v", stored, again, err)
		}
	})
}
