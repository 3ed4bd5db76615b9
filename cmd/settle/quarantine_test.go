package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
)

// A space with an unreadable commit is set aside. Every monitoring command reports it, and no other
// space of its partition is affected. After an operator's decision, the space continues.
func TestIncident_ACommitThatCannotBeRead(t *testing.T) {
	t.Parallel()
	url := ownServer(t, t.TempDir())
	d := begun(t, settle.Config{Programs: settle.Always(passing()), Bus: bus.Config{URL: url, Partitions: 2}})
	here, beside, there := spaceIn(0), besideIn(0), spaceIn(1)
	want(t, 0, "nothing is in quarantine", "quarantine")
	want(t, 1, "space "+here+" is not set aside", "quarantine", "show", here)
	want(t, 0, "handled", "send", here, "add", "--id", "a1", "--wait")
	if _, err := d.Bus().JetStream().Publish(t.Context(), "settle.log.0."+here, []byte(`{"v":99,"snd":[{}],"rt":"w9"}`)); err != nil {
		t.Fatal(err)
	}
	head, err := d.Bus().Head(t.Context(), here)
	if err != nil {
		t.Fatal(err)
	}
	seq := strconv.FormatUint(head, 10)
	want(t, 0, "stored", "send", here, "add", "--id", "a2", "--wait=none")
	wantSoon(t, 0, "space "+here+" is refused by | log of space "+here+", sequence "+seq+" | format version 99 | settle quarantine", "fleet")
	wantSoon(t, 2, "refuses space "+here+" since | sequence "+seq+" | `settle quarantine show "+here+"` prints it", "doctor", "--json")
	want(t, 1, "space "+here+" is set aside | sequence "+seq+" | settle quarantine show "+here, "get", here, "n")
	want(t, 0, "handled", "send", beside, "add", "--id", "b1", "--wait")
	want(t, 0, "settled", "send", beside, "pass", `"`+there+`"`, "--id", "p1", "--wait=tree")
	want(t, 1, "space "+here+" (partition 0): log of space "+here+", sequence "+seq+" | in quarantine: 1 message;", "quarantine", "list")
	want(t, 0, "commit    "+seq+" | behind    0 commits | found     by worker/ | without --yes | format version 99", "quarantine", "show", here)
	want(t, 0, `{"v":99,"snd":[{}],"rt":"w9"}`, "quarantine", "show", here, "--raw")
	want(t, 1, "is set aside | settle quarantine", "accept-loss", here)
	want(t, 1, "this is no loss that can be accepted", "accept-loss", here, "--yes")

	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.WriteFile(copied, []byte(`{"v":1,"sp":"`+there+`","rt":"w9","cur":{}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, 1, "the copy is not that commit | it is a commit of space", "quarantine", "restore", here, seq, copied, "--yes")
	want(t, 1, "for commit "+seq+", not 1", "quarantine", "skip", here, "1", "--yes")
	want(t, 1, "events that it has handled are handled again | nothing was changed", "quarantine", "skip", here, seq)
	want(t, 0, "commit "+seq+" is skipped", "quarantine", "skip", here, seq, "--yes", "--note", "a test")
	wantSoon(t, 0, "a2", "receipts", here)
	want(t, 0, "handled", "send", here, "add", "--id", "a3", "--wait")
	want(t, 0, "nothing is in quarantine", "quarantine")
	if out := wantSoon(t, 0, "1 worker", "fleet"); strings.Contains(out, "is refused") {
		t.Errorf("something is refused still:\n%s", out)
	}
}

// What is no event, no announcement, no rule and no rule about access is passed over by all processes, which report it with its
// sequence and reason; everything else goes on.
func TestIncident_MessagesThatCannotBeReadArePassedOver(t *testing.T) {
	t.Parallel()
	url := ownServer(t, t.TempDir())
	d := begun(t, settle.Config{Programs: settle.Always(passing()), Hosted: true, Bus: bus.Config{URL: url, Partitions: 1}})
	want(t, 0, "handled", "send", "s", "add", "--id", "a1", "--wait")
	wantSoon(t, 1, "no message that cannot be read", "doctor")
	for subject, body := range map[string]string{ // any order: each on its own
		"settle.send.0.s.add.e=1":                    "1",
		"$KV.SETTLE_WORKERS.stranger":                "no JSON",
		"$KV.SETTLE_PROGRAMS.rule.space.s":           `{"spaces":"another"}`,
		"$KV.SETTLE_PROGRAMS.access.of.-nobodysname": "no JSON",
	} {
		if _, err := d.Bus().JetStream().Publish(t.Context(), subject, []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	wantSoon(t, 1, "stream SETTLE_LANE_0: 1, the last at sequence 2 (settle.send.0.s.add.e=1): its subject is not that of an event | "+
		"stream KV_SETTLE_WORKERS: 1, the last at sequence | it is not the JSON of the member | stream KV_SETTLE_PROGRAMS: 2, the last at sequence", "doctor", "--json")
	want(t, 0, "(no principal) may send s/* and read nothing", "allow", "--no-principal", "--send", "s/*")
	wantSoon(t, 0, "handled", "send", "s", "add", "--wait")
}
