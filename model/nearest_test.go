package model

import (
	"strings"
	"testing"
)

func TestDidYouMean_NamesWhatIsSimilarEnough(t *testing.T) {
	long := strings.Repeat("charge", 40) // is compared with no name: the comparison of two long ones takes long
	names := []string{"charge", "mail", "reserve-seat", "y", strings.ToUpper(long)}
	for name, want := range map[string]string{
		"chrge": `; did you mean "charge"?`, "Charge": `; did you mean "charge"?`, "mial": "", "emai": "", "mai": `; did you mean "mail"?`,
		"reserveseat": `; did you mean "reserve-seat"?`, "zzzzzz": "", "x": "", "": "", strings.Repeat("charge", 1_000): "", long: "",
	} {
		if got := DidYouMean(name, names); got != want {
			t.Errorf("%.20s: %s, want %s", name, got, want)
		}
	}
}

func TestDistance_CountsEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "abd", 1}, {"abc", "ac", 1}, {"kitten", "sitting", 3}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("from %q to %q: %d, not %d", c.a, c.b, got, c.want)
		}
	}
}
