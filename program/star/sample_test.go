package star

import (
	"slices"
	"testing"
)

// The handler accepts the event that settle dev suggests.
func TestSamples_FitTheSchemas(t *testing.T) {
	for schema, want := range map[string]string{
		"{'name': str}": `{"name":"x"}`, "[int]": "[1]", "str": `"x"`, "{'a': {'b': bool, 'c?': str}, 'd': dict}": `{"a":{"b":true},"d":{}}`,
		"float": "1", "any": "null",
	} {
		p := compiled(t, "handle('first', lambda e: 1)\nhandle('h', lambda e: 1, payload = "+schema+")\n")
		if got := p.Samples(); !slices.Equal(got, []Sample{{Stream: "first"}, {"h", want}}) {
			t.Errorf("%s: %v, want %s", schema, got, want)
		}
	}
}
