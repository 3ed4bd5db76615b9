package program

import (
	"strings"
	"testing"

	"github.com/settlehq/settle/model"
)

// The records of the registry: rules by their keys, and versions.
func FuzzRecord(f *testing.F) {
	for _, key := range []string{"rule.all", "rule.space.cart", "rule.prefix.cart", "version.cart.3", "rule", ""} {
		f.Add(key, []byte(`{"spaces":"cart","target":{"program":"cart","version":"3"},"canary":{"version":"4","percent":5}}`))
		f.Add(key, []byte(`{"program":"cart","id":"3","files":{"a.star":""},"at":"2026-11-25T12:00:00Z"}`))
	}
	f.Fuzz(func(t *testing.T, key string, data []byte) {
		r := decodeRule(model.Record{Key: key, Data: data, Rev: 7})
		if r.broken == nil && r.Spaces != "" && CheckSpaces(r.Spaces) != nil {
			t.Errorf("%q of %q is a rule about %q", data, key, r.Spaces)
		}
		if r.broken == nil && r.Canary != nil && (r.Canary.Percent < 1 || r.Canary.Percent > 99) && r.Target != (Target{}) {
			t.Errorf("%q of %q has a canary of %d percent", data, key, r.Canary.Percent)
		}
		if v, err := decodeVersion(model.Record{Key: key, Data: data}); err == nil && !strings.HasPrefix(key, versionKey) {
			t.Errorf("%q of %q is version %s", data, key, v.Target())
		}
	})
}
