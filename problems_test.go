package settle_test

import (
	"strings"
	"testing"

	"github.com/settlehq/settle/gateway"
)

// What is asked of a space that runs no program, or does not exist, is answered with the problem of that, and never with an error of the worker.
func TestProblems_ASpaceWithoutAProgramIsNotAServerError(t *testing.T) {
	ask := posts(t, gateway.Config{})
	for path, want := range map[string]string{ // any order: each on its own
		"documents/n": "404 #no-program", "documents/n/history": "404 #not-found", "lane": "404 #not-found", "graph": "404 #not-found", "log": "404 #not-found", "why/n": "404 #not-found",
		"documents": `200 {"documents":[]}`,
	} {
		status, typed, _ := strings.Cut(want, " ")
		if got := ask("unprogrammed/"+path, "", "GET", ""); !strings.HasPrefix(got, status) || !strings.Contains(got, typed) {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	for _, path := range []string{"unprogrammed/streams/add", "unprogrammed/streams/add?wait=receipt"} {
		if got := ask(path, "", "e1", "1"); !strings.HasPrefix(got, "404 ") || !strings.Contains(got, "#no-program") || !strings.Contains(got, "nothing was stored") {
			t.Errorf("%s: %s", path, got)
		}
	}
	if got := ask("unprogrammed/lane", "", "GET", ""); !strings.HasPrefix(got, "404 ") {
		t.Errorf("an event was stored: %s", got)
	}
}

// A caller finds spaces and documents, and reads a part of one, over HTTP alone.
func TestProblems_SpacesAndPartsOverHTTP(t *testing.T) {
	ask := posts(t, gateway.Config{})
	for _, space := range []string{"lot-1", "lot-2", "shop"} {
		if got := ask(space+"/streams/add?wait=receipt&timeout=1m", "", "e1", ""); !strings.HasPrefix(got, "200 ") {
			t.Fatal(got)
		}
	}
	if got := ask("../spaces?spaces=lot-*&limit=1", "", "GET", ""); got != `200 {"spaces":["lot-1"],"next":"lot-1"}` {
		t.Error(got)
	}
	if got := ask("lot-1/documents/nosuch?path=a", "", "GET", ""); !strings.HasPrefix(got, "404 ") || !strings.Contains(got, "#no-document") {
		t.Error(got)
	}
}
