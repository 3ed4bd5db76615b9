package model

import "testing"

// Two payloads are the same if they are the same JSON value, whatever their form.
func TestSamePayload(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"", "", true},
		{"", "null", true},
		{"null", "0", false},
		{"0", "0.0", true},
		{"0", "", false},
		{`{"a":1,"b":[2]}`, "{ \"b\": [2],\n\"a\": 1 }", true},
		{`{"a":1}`, `{"a":1,"b":null}`, false},
		{"{", "{", true},
		{"{", "{}", false},
	} {
		a, b := &Message{Payload: []byte(c.a)}, &Message{Payload: []byte(c.b)}
		if SamePayload(a, b) != c.same || SamePayload(b, a) != c.same {
			t.Errorf("%q and %q: %v", c.a, c.b, !c.same)
		}
	}
}
