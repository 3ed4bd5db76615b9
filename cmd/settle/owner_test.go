package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
)

// In the directory of a running server, a developer reads everything there, whatever the rules are; what the developer sends obeys them, as what
// others send. A server that is named has no such default.
func TestOwner_ReadsWhateverTheRulesAre(t *testing.T) {
	dir := t.TempDir()
	url := ownServer(t, filepath.Join(dir, "store"))
	begun(t, settle.Config{Programs: settle.Always(passing()), Bus: bus.Config{URL: url, Partitions: 2}})
	want(t, 0, "handled", "send", "s1", "add", "--id", "e1", "--wait")
	want(t, 0, "This is the first rule", "allow", "alice", "--send", "s1/*")
	wantSoon(t, 1, "may not read document n of space s1", "get", "s1", "n")

	if err := os.MkdirAll(filepath.Join(dir, ".settle"), 0o700); err != nil {
		t.Fatal(err)
	}
	file(t, filepath.Join(dir, ".settle"), "dev.json", fmt.Sprintf(`{"nats":%q,"pid":%d}`, url, os.Getpid()))
	pointAt(t, "")
	t.Setenv("NATS_URL", "")
	t.Setenv("NATS_CONTEXT", "")
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Chdir(dir)
	want(t, 0, "1", "get", "s1", "n")
	want(t, 0, "nothing waits", "lane", "s1")
	want(t, 1, "a client without a principal may not send events of stream add to space s1", "send", "s1", "add", "--id", "e2", "--wait")
	want(t, 1, "alice may not read document n", "get", "s1", "n", "--principal", "alice")
	want(t, 1, "may not read document n of space s1", "get", "s1", "n", "--nats", url)
}
