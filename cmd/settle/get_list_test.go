package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/settlehq/settle/model"
)

func TestGet_WithoutADocumentListsWhatASpaceHas(t *testing.T) {
	t.Parallel()
	hosting(t)
	want(t, 0, "deployed", "deploy", file(t, t.TempDir(), "cart.star", cart("5", "0")), "--space", "*")
	want(t, 1, "there is no space alice: nothing was ever handled there; `settle ls` lists", "get", "alice")
	want(t, 1, "there is no space alice | an event makes one", "get", "alice", "total")
	want(t, 1, "there is no space alice", "get", "alice", "total", "--confirmed")
	want(t, 0, "no space has handled anything yet", "ls") // asking has made none
	want(t, 2, `space "a.b"`, "get", "a.b")
	want(t, 2, `document "a.b"`, "get", "alice", "a.b")
	eventually(t, ": handled", "send", "alice", "add", "--wait")
	want(t, 0, `items            2           {"n":1} | total            -  derived  not computed yet | may be older than its`, "get", "alice")
	untilValue(t, "5", "alice", "total")
	listed := want(t, 0, `items            2           {"n":1}`, "get", "alice")
	if lines := strings.Split(listed, "\n"); len(lines) != 8 || !strings.HasPrefix(lines[0], "DOCUMENT  REVISION           VALUE") ||
		!strings.HasPrefix(lines[3], "total ") || !strings.HasSuffix(lines[3], "  derived  5") {
		t.Errorf("listed is\n%s", listed)
	}
	var got []documentLine
	for line := range strings.Lines(want(t, 0, "", "get", "alice", "--json")) {
		var d documentLine
		if err := json.Unmarshal([]byte(line), &d); err != nil {
			t.Fatal(err)
		}
		got = append(got, d)
	}
	if len(got) != 2 || got[0].Document != "items" || got[0].Revision != 2 || got[0].Value.String() != `{"n":1}` || got[0].Derived || got[1].Document != "total" || !got[1].Derived {
		t.Errorf("as JSON: %+v", got)
	}
	if out := want(t, 0, "", "get", "alice", "items", "n", "--json"); out != `{"space":"alice","document":"items","path":["n"],"revision":2,"value":1}`+"\n" {
		t.Errorf("one as JSON: %s", out)
	}
	want(t, 1, "`settle get alice` lists those that it has", "get", "alice", "itmes")
	if out := want(t, 0, "total", "get", "alice", "--begin", "to"); strings.Contains(out, "items") {
		t.Errorf("by prefix: %s", out)
	}
	if out := want(t, 0, "total", "get", "alice", "--desc", "--limit", "1"); strings.Contains(out, "items") {
		t.Errorf("the last one: %s", out)
	}
	if out := want(t, 0, "total", "get", "alice", "--after", "items"); strings.Contains(out, "{") {
		t.Errorf("those behind: %s", out)
	}
	want(t, 0, "has no documents there", "get", "alice", "--begin", "x")
	want(t, 2, "leave the name of the document out", "get", "alice", "items", "--begin", "x")
	want(t, 2, "the limit of a page is -1", "get", "alice", "--limit=-1")
}

// Values may be long, but lines are cut to the width of the terminal.
func TestGet_TheListShortensValues(t *testing.T) {
	t.Parallel()
	long := documentLine{Document: "d", Revision: 7, Value: model.String(strings.Repeat("long ", 100))}
	if text := long.row(20)[3].text; len([]rune(text)) != 20 || !strings.HasSuffix(text, ellipsis) {
		t.Errorf("500 characters where there is room for 20: %q", text)
	}
}

// The derived documents of a program in the workers' executable are listed once it has saved them.
func TestGet_TheListKnowsWhatWasDerivedByProgramsInGo(t *testing.T) {
	t.Parallel()
	counting(t, 1)
	want(t, 0, "handled", "send", "alice", "add", "--wait")
	untilValue(t, "2", "alice", "double")
	eventually(t, "  derived  2", "get", "alice")
}
