package main

import (
	"strings"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
)

// The first rule closes a deployment; events of clients and reads that no rule covers are refused, those between spaces and the ends of actions
// are not, and every change applies to what comes after it.
func TestAccess_RulesAreChangedAndPrinted(t *testing.T) {
	t.Parallel()
	url := ownServer(t, t.TempDir())
	begun(t, settle.Config{Programs: settle.Always(passing()), Bus: bus.Config{URL: url, Partitions: 2}})
	want(t, 0, "There is no rule", "who-may")
	want(t, 0, "handled", "send", "s1", "add", "--id", "e1", "--wait")
	for _, bad := range [][]string{
		{"allow"},
		{"allow", "alice", "--no-principal"},
		{"allow", "a.b", "--send", "*/*"},
		{"allow", "alice", "--send", "nothing"},
		{"disallow", "alice", "--read", "a/b/c"},
		{"who-may", "write", "s1/add"},
		{"who-may", "send", "s1"},
	} {
		want(t, 2, "", bad...)
	}
	want(t, 0, "shop-* may send s1/* and read nothing | This is the first rule", "allow", "shop-*", "--send", "s1/*", "--note", "a test", "--by", "me")
	want(t, 0, "PRINCIPAL | shop-* | s1/* | me | a test", "who-may")
	want(t, 0, `"closed":true | "principal":"shop-*"`, "who-may", "--json")
	want(t, 0, "shop-*", "who-may", "send", "s1/add")
	want(t, 0, "no principal may read s1/n", "who-may", "read", "s1/n")
	wantSoon(t, 1, "a client without a principal may not send events of stream add to space s1", "send", "s1", "add", "--wait")
	want(t, 1, "a client without a principal may not read document n of space s1", "get", "s1", "n")
	want(t, 0, "1", "get", "s1", "n", "--principal", "operator")
	want(t, 0, "handled", "send", "s1", "add", "--principal", "operator", "--wait")
	want(t, 2, "the name is that of operators", "allow", "operator", "--send", "*/*")
	want(t, 2, "the name is that of operators", "permissions", "--principal", "operator")
	want(t, 2, "a role has this name", "permissions", "--principal", "reader")
	want(t, 1, "no receipt within 500ms: a client without a principal may not send | creates no space", "send", "never", "add", "--wait", "--timeout", "500ms")
	wantSoon(t, 0, "! a client without a principal to space never: 1 event was passed over, the last of them  | the space does not exist, and a client without a principal may not send events of stream add to space never | settle allow", "fleet")
	want(t, 1, "there is no such space", "delete", "never", "--yes")
	want(t, 0, "(no principal) may send */pass and read */n", "allow", "--no-principal", "--send", "*/pass", "--read", "*/n")
	wantSoon(t, 0, "settled", "send", "s2", "pass", `"s3"`, "--wait=tree")
	want(t, 0, "1", "get", "s3", "n")
	want(t, 1, "refused", "send", "s3", "add", "--wait")
	want(t, 0, "(no principal) may send nothing and read */n", "disallow", "--no-principal", "--send", "*/pass")
	wantSoon(t, 1, "refused", "send", "s2", "pass", `"s3"`, "--wait")
	want(t, 0, "shop-* may send nothing and read nothing", "disallow", "shop-*")
	want(t, 0, "no principal may send s1/add", "who-may", "send", "s1/add")

	// What has changed something is in the audit trail, and what has failed or only looked is not.
	trail := want(t, 0, "settle allow shop-* --send s1/* --note a test --by me | settle disallow shop-*", "audit")
	if n := strings.Count(trail, "\n"); n != 4 || strings.Contains(trail, "who-may") {
		t.Errorf("the audit trail has %d lines:\n%s", n, trail)
	}
	want(t, 0, `"command":"settle disallow shop-*"`, "audit", "--last", "1", "--json")
}
