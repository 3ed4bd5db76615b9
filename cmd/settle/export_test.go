package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
)

// Exported documents are imported into a deployment with another name and another number of partitions,
// concurrently with other events, and computations run on them.
func TestExport_IsImportedElsewhere(t *testing.T) {
	counting(t, 1)
	for _, space := range []string{"alice", "alice", "bob"} {
		want(t, 0, "handled", "send", space, "add", "--wait")
	}
	untilValue(t, "4", "alice", "double")
	eventually(t, "  derived  4", "get", "alice")
	file := filepath.Join(t.TempDir(), "all.jsonl")
	want(t, 2, "which spaces? Give their names, or --all", "export")
	want(t, 2, "which spaces?", "export", "alice", "--all")
	want(t, 1, "there is no space carol", "export", "alice", "carol", "--output", file)
	if _, err := os.Stat(file); err == nil {
		t.Error("what failed has left a file")
	}
	want(t, 0, "5 documents of 2 spaces", "export", "--all", "--output", file)
	one := want(t, 0, `{"space":"bob","document":"n","revision": | as of log sequence`, "export", "bob")
	if strings.Count(one, "\n") != 2 {
		t.Errorf("bob has\n%s", one)
	}

	cfg := settle.Config{
		Programs: settle.Always(counter()), Bus: bus.Config{Partitions: 5, Prefix: "copy"},
		Server: embedded.Config{StoreDir: t.TempDir(), Fsync: embedded.FsyncInterval, Listen: ":0"},
	}
	d, err := settle.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	pointAt(t, d.Server().ClientURL())
	t.Setenv("SETTLE_PREFIX", "copy")
	want(t, 0, "4 documents of 2 spaces written, 0 there already", "import", file)
	want(t, 0, "0 documents of 2 spaces written, 4 there already", "import", file)
	untilValue(t, "4", "alice", "double")
	want(t, 0, "handled", "send", "alice", "add", "--wait")
	untilValue(t, "6", "alice", "double")
	want(t, 1, "0 of 2 spaces are imported, then: | document deep exists with another value; --replace overwrites it", "import", file)
	want(t, 0, "2 documents of 2 spaces written, 2 there already", "import", file, "--replace")
	untilValue(t, "4", "alice", "double")

	alone := filepath.Join(t.TempDir(), "bob.jsonl")
	want(t, 0, "", "export", "bob", "-o", alone)
	want(t, 0, "1 document of 1 space written", "import", alone, "--space", "bert", "--skip", "deep")
	want(t, 0, "1", "get", "bert", "n")
	want(t, 1, "no document deep", "get", "bert", "deep", "--confirmed")
	want(t, 2, "--space renames one space, and there are 2", "import", file, "--space", "bert")
}

// Nothing is written if any line of the input is invalid.
func TestImport_RefusesWhatIsNoDocument(t *testing.T) {
	t.Parallel()
	counting(t, 1)
	good := `{"space":"alice","document":"n","value":1}` + "\n"
	for line, says := range map[string]string{
		"":                    "there is nothing to import",
		good + `{"space":"al`: "line 2: it is not the JSON object of a document",
		good + `{"space":"a.b","document":"n","value":1}`: `line 2: space "a.b"`,
		good + `{"space":"alice","document":"m"}`:         "line 2: document m has no value",
		good + good: "line 2: document n of space alice occurs twice",
		`{"space":"alice","document":"n","path":["x"],"value":1}`:                               "line 1: it is a part of document n",
		`{"space":"alice","document":"mail","value":{"tasks":{"k":{"state":"pending","n":1}}}}`: "holds 1 task that is not done: imported, they would be performed again; omit them with --skip mail",
	} {
		file := filepath.Join(t.TempDir(), "in.jsonl")
		if err := os.WriteFile(file, []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
		want(t, 2, says, "import", file)
	}
	want(t, 1, "there is no space alice", "get", "alice", "n")
}

func TestGet_AtARevision(t *testing.T) {
	t.Parallel()
	counting(t, 1)
	for range 3 {
		want(t, 0, "handled", "send", "alice", "add", "--wait")
	}
	_, now, _ := strings.Cut(want(t, 0, `"value":3`, "get", "alice", "n", "--confirmed", "--json"), `"revision":`)
	now, _, _ = strings.Cut(now, ",")
	want(t, 0, "3", "get", "alice", "n", "--at", now)
	want(t, 0, `{"space":"alice","document":"n","revision":2,"value":1}`, "get", "alice", "n", "--at", "2", "--json")
	want(t, 0, "1", "get", "alice", "deep", "a", "0", "--at", "2")
	want(t, 1, "space alice had no document n at revision 1", "get", "alice", "n", "--at", "1")
	want(t, 1, "at revision 999999: the last commit of the space is at", "get", "alice", "n", "--at", "999999")
	want(t, 2, "use a revision, as `settle get -v` prints it", "get", "alice", "n", "--at", "yesterday")
	want(t, 2, "--at needs the name of a document", "get", "alice", "--at", "2")
}
