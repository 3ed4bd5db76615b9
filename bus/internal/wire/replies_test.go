package wire

import "testing"

func TestMayAnswer_OnlyToInboxes(t *testing.T) {
	for reply, want := range map[string]bool{ // any order: each by itself
		"_INBOX.abc":                         true,
		"_INBOX.abc.1":                       true,
		"_R_.abc.def":                        true, // another account's
		"_GR_.abcdef.ghijkl._INBOX.abc":      true, // another cluster's
		"":                                   false,
		"_INBOX_alice.abc":                   true, // of a user of its own
		"_R_.abc":                            true,
		"_INBOX_alice":                       false,
		"_INBOX_.abc":                        false,
		"_INBOX":                             false,
		"_INBOXES.a":                         false,
		"_GR_.abcdef._INBOX.abc":             false,
		"_GR_.abcdef.ghijkl.settle.log.1.a":  false,
		"settle.log.1.a":                     false,
		"settle.lane.1.a.b.c":                false,
		"$KV.SETTLE_PROGRAMS.rule.a":         false,
		"$JS.API.STREAM.PURGE.SETTLE_LOG_1":  false,
		"$JS.FC.SETTLE_LOG_1.settle.1":       false,
		"$JS.ACK.SETTLE_LOG_1.settle.1.1.1.": false,
	} {
		if got := MayAnswer(reply); got != want {
			t.Errorf("MayAnswer(%q) = %v", reply, got)
		}
	}
}
