package access

import (
	"encoding/json"
	"testing"

	"github.com/settlehq/settle/model"
)

// A record is a rule about the principal of its key, or an error; a rule that is decoded is stored as it was.
func FuzzDecodeRule(f *testing.F) {
	for _, seed := range [][2]string{
		{"access.none", `{"principal":"","send":["s/add"]}`},
		{"access.of.-alice", `{"principal":"alice","read":["cart-*/n"],"at":"2026-11-27T00:00:00Z"}`},
		{"access.of.-b.-", `{"principal":"b*"}`},
		{"access.of.-", `{"principal":"*"}`},
		{"access.of.-a", `[]`},
		{"access.of.-a", ``},
	} {
		f.Add(seed[0], []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, key string, data []byte) {
		r, there, err := decode(model.Record{Key: key, Data: data})
		if !there || err != nil {
			if len(r.Send)+len(r.Read) > 0 {
				t.Fatalf("a rule that is none allows %+v", r)
			}
			return
		}
		if keyOf(r.Principal) != key || r.check() != nil {
			t.Fatalf("%q is a rule about %q: %v", key, r.Principal, r.check())
		}
		again, err := json.Marshal(&r)
		if err != nil {
			t.Fatal(err)
		}
		if other, _, err := decode(model.Record{Key: key, Data: again}); err != nil || other.Principal != r.Principal || len(other.Send) != len(r.Send) || len(other.Read) != len(r.Read) {
			t.Fatalf("%s becomes %+v, %v", again, other, err)
		}
	})
}

// What this version does not know may restrict a rule: the record allows nothing, and closes the deployment.
func TestDecode_AFieldThatIsNotKnownAllowsNothing(t *testing.T) {
	for _, data := range []string{
		`{"principal":"alice","send":["*/*"],"until":"2026-12-01T00:00:00Z"}`, `{"principal":"alice","send":["*/*"]}{"deny":["*/*"]}`,
	} {
		r, there, err := decode(model.Record{Key: "access.of.-alice", Data: []byte(data)})
		if !there || err == nil || len(r.Send) > 0 {
			t.Errorf("%s is the rule %+v, %v, %v", data, r, there, err)
		}
	}
}
