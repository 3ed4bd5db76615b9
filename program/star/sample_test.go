package star

import "testing"

// What settle dev suggests to send is accepted by the handler.
func TestSample_FitsTheSchema(t *testing.T) {
	for schema, want := range map[string]string{
		"{'name': str}": `{"name":"x"}`, "[int]": "[1]", "str": `"x"`, "{'a': {'b': bool, 'c?': str}, 'd': dict}": `{"a":{"b":true},"d":{}}`,
		"float": "1", "any": "null",
	} {
		p := compiled(t, "handle('first', lambda e: 1)\nhandle('h', lambda e: 1, payload = "+schema+")\n")
		if stream, payload := p.Sample(); stream != "h" || payload != want {
			t.Errorf("%s: %s %s, want %s", schema, stream, payload, want)
		}
	}
	if stream, payload := compiled(t, "handle('h', lambda e: 1)").Sample(); stream != "h" || payload != "" {
		t.Errorf("without a schema: %s %s", stream, payload)
	}
}
