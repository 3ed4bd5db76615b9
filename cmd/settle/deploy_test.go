package main

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
)

// hosting starts a deployment that hosts what is deployed, and points the command line at it.
func hosting(t *testing.T) *settle.Deployment {
	t.Helper()
	d, err := settle.Start(t.Context(), settle.Config{
		Hosted: true,
		Server: embedded.Config{StoreDir: t.TempDir(), Fsync: embedded.FsyncInterval, Listen: ":0"},
		Bus:    bus.Config{Partitions: 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	pointAt(t, d.Server().ClientURL())
	return d
}

// cart returns a program whose price and discount can be chosen.
func cart(price, discount string) string {
	return `
items = cell("items", {"n": 0})

def add(e):
    items.n += 1
    return items.n

handle("add", add)

def total():
    return ` + price + ` * items.n

compute("total", total)

def discount():
    return ` + discount + `

compute("discount", discount)
`
}

func file(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

var versionPattern = regexp.MustCompile(`cart@([0-9a-f]{12})`)

func versionIn(t *testing.T, out string) string {
	t.Helper()
	m := versionPattern.FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("no version in %q", out)
	}
	return m[1]
}

// untilValue waits until a document has a value.
func untilValue(t *testing.T, value, space, doc string) {
	t.Helper()
	eventually(t, value, "get", space, doc)
}

func TestDeploy_FromTheFirstVersionToTheRollback(t *testing.T) {
	t.Parallel()
	hosting(t)
	dir := t.TempDir()
	one := file(t, dir, "cart.star", cart("5", "0"))

	want(t, 0, "no program was deployed here", "versions")
	want(t, 0, "2 nodes, 1 stream | spaces    cart* (a new rule); none exists | nothing was stored (--dry-run)", "deploy", one, "--dry-run")
	want(t, 0, "no program was deployed here", "versions")
	want(t, 2, "nothing for the others to stay with", "deploy", one, "--canary", "5")
	first := versionIn(t, want(t, 0, "spaces    cart* (a new rule) | deployed; workers load it", "deploy", one, "--by", "ann", "--note", "the first"))

	for _, space := range []string{"cart-1", "cart-2", "cart-3"} {
		want(t, 0, ": handled", "send", space, "add", "--wait")
		untilValue(t, "5", space, "total")
	}
	want(t, 0, "cart-1 | cart@"+first+"  cart* | cart-3", "ls")
	want(t, 0, "none of the 3 spaces that exist", "ls", "airport-*")
	want(t, 0, "cart     "+first+" | ann | cart* | the first", "versions")

	want(t, 0, "before    the same version", "deploy", one)
	file(t, dir, "cart.star", cart("7", "0"))
	second := versionIn(t, want(t, 0, "before    "+first+": 1 of 2 nodes has new code and runs again; 1 unchanged | changed   total | cart*, which ran cart@"+first+"; cart-1, cart-2, cart-3 change over | Back: settle rollback cart", "deploy", one))
	untilValue(t, "7", "cart-1", "total")

	want(t, 0, "spaces cart-2: cart@"+first+" (pinned)", "pin", "cart-2", "cart@"+first[:5])
	untilValue(t, "5", "cart-2", "total")
	file(t, dir, "cart.star", cart("7", "1"))
	third := versionIn(t, want(t, 0, "changed   discount | cart-1, cart-3 change over", "deploy", one))
	untilValue(t, "1", "cart-3", "discount")
	untilValue(t, "0", "cart-2", "discount")

	want(t, 0, "spaces cart*: now run cart@"+second+" (before: cart@"+third+")", "rollback", "cart")
	untilValue(t, "0", "cart-3", "discount")
	want(t, 0, "now run cart@"+first+" (before: cart@"+second+")", "rollback", "cart", first[:6])
	untilValue(t, "5", "cart-3", "total")
	want(t, 1, "no version nosuch; there are "+first, "rollback", "cart", "nosuch")
	want(t, 0, "spaces cart-2: no rule of their own any more (former: cart@"+first+" (pinned)); the rule about cart* assigns cart@"+first+" to them\n", "unpin", "cart-2")
	want(t, 1, "there is no rule about spaces cart-2", "unpin", "cart-2")

	var v versions
	if err := json.Unmarshal([]byte(want(t, 0, "", "versions", "cart", "--json")), &v); err != nil || len(v.Versions) != 3 || len(v.Rules) != 1 || len(v.Rules[0].History) < 3 {
		t.Errorf("versions as JSON: %+v, %v", v, err)
	}
	want(t, 1, "program other was never deployed", "versions", "other")
}

func TestDeploy_ACanaryIsTriedInItsShareAndEndsWithARollbackOrADeployment(t *testing.T) {
	t.Parallel()
	hosting(t)
	dir := t.TempDir()
	path := file(t, dir, "cart.star", cart("5", "0"))
	first := versionIn(t, want(t, 0, "deployed", "deploy", path, "--space", "*"))
	for _, s := range strings.Fields("a b c d e f g h") {
		want(t, 0, "handled", "send", s, "add", "--wait")
	}
	file(t, dir, "cart.star", cart("6", "0"))
	second := versionIn(t, want(t, 0, "deployed to 50 percent", "deploy", path, "--canary", "50"))
	out := want(t, 0, "cart@"+first+" | cart@"+second, "ls")
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) < 3 || !strings.HasPrefix(fields[2], "cart@") {
			continue
		}
		value := map[string]string{"cart@" + first: "5", "cart@" + second: "6"}[fields[2]]
		untilValue(t, value, fields[0], "total")
	}
	want(t, 0, "* (50%) | cart@"+first+", 50% of them "+second, "versions")
	want(t, 0, "spaces *: now run cart@"+first+" (before: cart@"+first+", 50% of them "+second+")", "rollback", "cart")
	untilValue(t, "5", "a", "total")
	want(t, 0, "deployed to 10 percent", "deploy", path, "--canary", "10")
	want(t, 0, "deployed; workers", "deploy", path)
	untilValue(t, "6", "a", "total")
	untilValue(t, "6", "h", "total")
}

func TestDeploy_WhatDoesNotCompileIsNotDeployed(t *testing.T) {
	t.Parallel()
	hosting(t)
	dir := t.TempDir()
	path := file(t, dir, "cart.star", cart("5", "0")+"\ndef f():\n    return 1 + \"x\"\n\nf()\n")
	want(t, 1, "the program was not deployed | cart.star:21:14: | in f | cart.star:23:2: in", "deploy", path)
	want(t, 2, "not allowed | --name NAME", "deploy", file(t, dir, "a b.star", ""))
	want(t, 1, "the program was not deployed: | empty.star registers nothing", "deploy", file(t, dir, "empty.star", "# nothing yet"))
	want(t, 2, "use a space (airport-1)", "deploy", path, "--space", "a.*")
	want(t, 2, "1 to 99 percent", "deploy", path, "--canary", "100")
	want(t, 0, "no program was deployed here", "versions")
	want(t, 2, "which version? settle versions cart", "pin", "a", "cart")
	want(t, 1, "was never deployed here", "pin", "a", "cart@1")
	want(t, 1, "no rule has spaces run program cart", "rollback", "cart")
	want(t, 0, "no space has handled anything", "ls")
}

func TestSend_SaysThatNoRuleConcernsTheSpace(t *testing.T) {
	t.Parallel()
	hosting(t)
	want(t, 0, "a new rule", "deploy", file(t, t.TempDir(), "cart.star", cart("5", "0")))
	wantInVain(t, "no rule assigns a program to space shop; rules: cart* (settle versions)", "send", "shop", "add", "--wait")
}

func TestHelp_IsACommandToo(t *testing.T) {
	t.Parallel()
	want(t, 0, "Usage: settle <command>", "help")
	want(t, 0, "Usage: settle send", "help", "send")
	help := want(t, 0, "Usage: settle <command> | \nBegin\n  init star <dir> | \nDocuments and events\n | \nPrograms\n | \nOperation\n | \nDemonstrations and measurements\n  demo")
	if strings.Contains(help, "\nCommands:\n") {
		t.Error("a command is in no group")
	}
}

func TestDev_OtherCommandsFindTheServerOfTheirDirectory(t *testing.T) {
	d := hosting(t)
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, ".settle"), 0o700); err != nil {
		t.Fatal(err)
	}
	file(t, filepath.Join(dir, ".settle"), "dev.json", `{"nats":"`+d.Server().ClientURL()+`"}`)
	pointAt(t, "")
	t.Setenv("NATS_URL", "")
	t.Setenv("NATS_CONTEXT", "")
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Chdir(dir)
	want(t, 0, "no space has handled anything", "ls")
	want(t, 0, "deployment settle:", "provision")
	wantSoon(t, 1, "nats-server 2. | coordinators   one", "doctor")
	t.Setenv("NATS_URL", "nats://127.0.0.1:1") // the environment names a server
	want(t, 1, "connect to NATS", "ls")
}

// capitals mark the places where the name of a command has a hyphen.
var capitals = regexp.MustCompile("([a-z])([A-Z])")

// looksFor collects what a command prints, and ends it when that names a server.
type looksFor struct {
	server string
	end    func()
	mu     sync.Mutex
	text   strings.Builder
}

func (l *looksFor) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	if strings.Contains(l.text.String(), l.server) {
		l.end()
	}
	return len(p), nil
}

// Each command that connects finds the server, including new commands.
func TestDev_IsFoundByEveryCommandThatConnects(t *testing.T) {
	dir := t.TempDir()
	counting(t, 1)
	backup := filepath.Join(dir, "backup")
	want(t, 0, "deployment settle", "backup", backup)
	if err := os.MkdirAll(filepath.Join(dir, ".settle"), 0o700); err != nil {
		t.Fatal(err)
	}
	file(t, filepath.Join(dir, ".settle"), "dev.json", `{"nats":"nats://127.0.0.1:1"}`)
	pointAt(t, "")
	t.Setenv("NATS_URL", "")
	t.Setenv("NATS_CONTEXT", "")
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Chdir(dir)
	star := file(t, dir, "cart.star", cart("5", "0"))
	arguments := map[string][]string{
		"where": {"a"}, "send": {"a", "b"}, "get": {"a", "b"}, "watch": {"a", "b"}, "deploy": {star}, "rollback": {"cart"},
		"pin": {"a", "cart@1"}, "unpin": {"a"}, "receipts": {"a"}, "query": {"SELECT 1"}, "log": {"a"}, "history": {"a", "b"}, "why": {"a", "b"}, "lane": {"a"}, "graph": {"a"}, "timers": {"a"}, "tree": {"a"}, "redrive": {"a", "b"}, "dismiss": {"a", "b"},
		"cancel": {"a"}, "skip": {"a"}, "export": {"a"}, "import": {file(t, dir, "a.jsonl", `{"space":"a","document":"b","value":1}`)},
		"allow": {"alice"}, "disallow": {"alice"}, "delete": {"a"}, "drain": {"w1"}, "backup": {filepath.Join(dir, "another")}, "restore": {backup}, "clone": {"another"}, "replay": {"a", filepath.Join(dir, "replay")}, "perform": {"a", "--", "true"}, "load": {"a", "b"},
	}
	connecting := reflect.TypeFor[connection]()
	commands := reflect.TypeFor[cli]()
	asked := 0
	for i := range commands.NumField() {
		f := commands.Field(i)
		if f.Type.Kind() != reflect.Struct {
			continue
		}
		if c, ok := f.Type.FieldByName("connection"); !ok || c.Type != connecting {
			continue
		}
		asked++
		name := cmp.Or(f.Tag.Get("name"), strings.ToLower(capitals.ReplaceAllString(f.Name, "$1-$2")))
		said := looksFor{server: "nats://127.0.0.1:1"}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		said.end = cancel // perform waits for the server
		run(ctx, append([]string{name}, arguments[name]...), &said, &said)
		cancel()
		if !strings.Contains(said.text.String(), said.server) {
			t.Errorf("settle %s does not look for the server of this directory: %s", name, &said.text)
		}
	}
	if asked < 15 {
		t.Errorf("%d commands connect; there are more", asked)
	}
}
