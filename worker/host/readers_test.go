package host

import "testing"

// The name under which the host of a space observes documents has the space, whatever is in the name of the worker; the names of other observers
// have none.
func TestReaderOf_FindsTheSpace(t *testing.T) {
	for watcher, want := range map[string]string{ // any order: the cases are independent
		watcherOf("w1", "cart-7_b", "NONCE") + "-3": "cart-7_b",
		watcherOf("a/b", "cart", "NONCE") + "-12":   "cart",
		"w1-live-ABCDEFGHIJKL":                      "",
		"a/b/c-live-ABCDEFGHIJKL":                   "",
		"w1-cart-NONCE-3":                           "",
		"cart/NONCE-3":                              "",
		"w1/no space/NONCE-3":                       "",
		"":                                          "",
	} {
		if got := readerOf(watcher); got != want {
			t.Errorf("%q: %q, want %q", watcher, got, want)
		}
	}
}
