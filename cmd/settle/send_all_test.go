package main

import "testing"

// One command sends an event to all spaces of a pattern, and the same command again sends it on.
func TestSend_ToAllSpacesOfAPattern(t *testing.T) {
	t.Parallel()
	counting(t, 1)
	for _, space := range []string{"lot-1", "lot-2", "other"} {
		want(t, 0, "handled", "send", space, "add", "--wait")
	}
	want(t, 0, "m-1: stored for 2 spaces | 2 spaces: 2 handled", "send", "--all", "lot-*", "add", "5", "--id", "m-1", "--wait")
	want(t, 0, "m-1: stored for 2 spaces, 2 of which had it before", "send", "--all", "lot-*", "add", "5", "--id", "m-1")
	want(t, 0, "stored for 3 spaces", "send", "--all", "*", "add", "1")
	want(t, 0, `{"before":2,"event":"m-1","spaces":2}`, "send", "--all", "lot-*", "add", "5", "--id", "m-1", "--json")
	want(t, 0, "no space matches x-*, and nothing is sent", "send", "--all", "x-*", "add", "1", "--wait")
	want(t, 2, "--all lot is no pattern", "send", "--all", "lot", "add", "5")
	want(t, 2, "takes the place of the space", "send", "--all", "lot-*", "lot-1", "add", "5")
	want(t, 2, "name the stream", "send", "lot-1")
	want(t, 1, "did not handle the event", "send", "--all", "lot-*", "nosuch", "--wait", "--id", "n-1")
}
