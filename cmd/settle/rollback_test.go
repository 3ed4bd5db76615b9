package main

import (
	"strings"
	"testing"
)

// A rollback names the documents that the restored version cannot read, if the program before it had named them in a later version: a document, the rows of one,
// and the version of a canary. It does not warn of others.
func TestRollback_WarnsOfDocumentsThatItCannotRead(t *testing.T) {
	t.Parallel()
	hosting(t)
	dir := t.TempDir()
	const form = `items = cell("items", {"n": 0}`
	one := file(t, dir, "cart.star", cart("5", "0"))
	first := versionIn(t, want(t, 0, "deployed", "deploy", one))
	file(t, dir, "cart.star", strings.Replace(cart("5", "0"), form, `cell("team", rows = True, version = 3, upgrades = [lambda old: old])
`+form+`, version = 2, upgrades = [lambda old: old]`, 1))
	second := versionIn(t, want(t, 0, "deployed", "deploy", one))
	file(t, dir, "cart.star", strings.Replace(cart("6", "0"), form, form+`, version = 3, upgrades = [lambda old: old]`, 1))
	want(t, 0, "deployed", "deploy", one, "--canary", "50")
	want(t, 0, "now run cart@"+second+" | warning: spaces cart*: cart@"+second+" cannot read document items in version 3 (it reads versions up to 2)", "rollback", "cart")
	want(t, 0, "cart@"+first+" cannot read document items in version 2 (it reads versions up to 1), the rows of document team in version 3 (it reads versions up to 1) | `settle upgrades items=2 team/*=3` counts those", "rollback", "cart", first)
	if code, out, stderr := command(t.Context(), t, "rollback", "cart", second); code != 0 || strings.Contains(stderr, "warning") {
		t.Errorf("%d\n%s%s", code, out, stderr)
	}
	want(t, 0, `"document": "items" | "document": "team" | "rows": true`, "rollback", "cart", first, "--json")
}
