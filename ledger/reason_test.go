package ledger

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

// What is kept of a transient error is its first line, of bounded size and valid UTF-8, whatever the handler has returned.
func TestReason_IsBounded(t *testing.T) {
	for text, want := range map[string]string{
		"no light\n  shop.star:1:2: in add": "no light",
		"\n no light ":                      "no light",
		"":                                  "",
		strings.Repeat("x", 300):            strings.Repeat("x", maxReason) + "…",
		"a\xffb":                            "ab",
	} {
		if got := reasonOf(errors.New(text)); got != want {
			t.Errorf("of %q %q is kept", text, got)
		}
	}
	if got := reasonOf(errors.New(strings.Repeat("é", 300))); !utf8.ValidString(got) || len(got) > maxReason+len("…") {
		t.Errorf("%q", got)
	}
}
