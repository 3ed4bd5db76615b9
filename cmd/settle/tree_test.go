package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/lineage"
)

// shop returns a program in which an order is charged at the bank, which refuses stolen cards until the
// document lenient is set, and shipped by a depot that cannot wrap.
func shop() *settle.Program {
	ok := func(*settle.Tx, *settle.Event) (settle.Value, error) { return settle.ValueOf("ok") }
	p := settle.NewProgram("shop")
	letters := settle.NewAction[string, string]("letter")
	letters.External(p)
	return p.
		Handle("write", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
			letters.Start(tx, ev.ID, "hello")
			return settle.Value{}, nil
		}).
		Handle("order", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
			tx.Send("bank", "charge", ev.Payload)
			tx.Send("depot", "ship", nil)
			if wrap, _ := ev.Payload.Get("wrap").AsBool(); wrap {
				tx.Send("depot", "wrap", nil)
			}
			return settle.ValueOf("ordered")
		}).
		Handle("charge", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
			lenient, _ := tx.Get("lenient").AsBool()
			if short, _ := ev.Payload.Get("short").AsBool(); short {
				return settle.Value{}, settle.Reject("short", "no money", map[string]int{"left": 3})
			}
			if stolen, _ := ev.Payload.Get("stolen").AsBool(); stolen && !lenient {
				return settle.Value{}, errors.New("the card is stolen")
			}
			return settle.ValueOf("charged")
		}).
		Handle("lenient", func(tx *settle.Tx, _ *settle.Event) (settle.Value, error) {
			tx.Set("lenient", true)
			return settle.Value{}, nil
		}).
		Handle("down", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
			left, _ := ev.Payload.AsInt()
			if left == 0 {
				return settle.Value{}, errors.New("this is the end")
			}
			tx.Send(ev.Space, "down", left-1)
			return settle.Value{}, nil
		}).
		Handle("ship", ok)
}

// running starts a deployment on a server that listens, and points the command line at it.
func running(t *testing.T) *settle.Deployment {
	t.Helper()
	d, err := settle.Start(t.Context(), settle.Config{
		Programs: settle.Always(shop()),
		Server:   embedded.Config{StoreDir: t.TempDir(), Fsync: embedded.FsyncInterval, Listen: ":0"},
		Bus:      bus.Config{Partitions: 2},
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

// try runs a command, and reports a wrong exit code or parts that are missing in its output and errors.
func try(t *testing.T, code int, parts string, args ...string) (stdout string, wrong []string) {
	t.Helper()
	got, stdout, stderr := command(t.Context(), t, args...)
	t.Logf("settle %s\n%s%s", strings.Join(args, " "), stdout, stderr)
	if got != code {
		wrong = append(wrong, fmt.Sprintf("settle %s: code %d, want %d", strings.Join(args, " "), got, code))
	}
	for part := range strings.SplitSeq(parts, " | ") {
		if !strings.Contains(stdout+stderr, part) {
			wrong = append(wrong, fmt.Sprintf("settle %s does not say %q:\n%s%s", strings.Join(args, " "), part, stdout, stderr))
		}
	}
	return stdout, wrong
}

// want runs a command and checks its exit code and that its output and errors have all
// of these.
func want(t *testing.T, code int, parts string, args ...string) string {
	t.Helper()
	stdout, wrong := try(t, code, parts, args...)
	for _, w := range wrong {
		t.Error(w)
	}
	return stdout
}

// wantSoon is want for a command that treats processes as absent if they do not answer quickly: on a
// slow machine it is repeated.
func wantSoon(t *testing.T, code int, parts string, args ...string) string {
	t.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for begun := time.Now(); ; <-again.C {
		stdout, wrong := try(t, code, parts, args...)
		switch {
		case len(wrong) == 0:
			return stdout
		case time.Since(begun) > time.Minute: // the time in which an incident must be visible
			t.Fatal(wrong)
		}
	}
}

// wantInVain is want for a command that waits for something that does not happen. TIMEOUT stands for its
// timeout, which is increased until the command gets as far as waiting.
func wantInVain(t *testing.T, parts string, args ...string) {
	t.Helper()
	for timeout := 200 * time.Millisecond; ; timeout *= 3 {
		now := strings.ReplaceAll(parts, "TIMEOUT", timeout.String())
		_, wrong := try(t, 1, now, append(slices.Clone(args), "--timeout", timeout.String())...)
		if len(wrong) == 0 {
			return
		}
		if timeout > patience/2 {
			t.Fatal(wrong)
		}
	}
}

func TestTree_OfALiveDeploymentFromTheSendToTheRedrive(t *testing.T) {
	t.Parallel()
	running(t)
	want(t, 0, "o1: stored, lane sequence 1", "send", "shop", "order", `{"stolen":false}`, "--id", "o1")
	want(t, 0, "o1: already sent | o1 had been sent before, with another payload; this payload was not used", "send", "shop", "order", `{"stolen":true}`, "--id", "o1", "--wait=none")
	want(t, 0, "o1: already sent | o1 had been sent before, with the same payload", "send", "shop", "order", `{ "stolen": false }`, "--id", "o1")
	want(t, 0, `o1: handled, result "ordered" | o1 had been sent before`, "send", "shop", "order", `{"stolen": false}`, "--id", "o1", "--wait")
	for _, wait := range []string{"--wait", "--wait=tree"} {
		want(t, 1, "event o1 to shop/order: an event of this id was sent before, with another payload", "send", "shop", "order", `{"stolen":true}`, "--id", "o1", wait)
	}
	want(t, 0, `"outcome":"handled" | "event":"at-`, "send", "shop", "order", "--wait=receipt", "--json")
	want(t, 0, `o1 had been sent before | shop/order  o1 | ├─ ✓ bank/charge | └─ ✓ depot/ship | 3 events: 3 handled; settled`, "send", "shop", "order", `{"stolen":false}`, "--id", "o1", "--wait=tree")
	want(t, 1, `✗ bank/charge | the card is stolen | refused | shop/undelivered | settled | settle redrive bank shop: | --stream charge | were not handled`,
		"send", "shop", "order", `{"stolen":true,"wrap":true}`, "--id", "o2", "--wait=tree")

	var tree history.Tree
	if err := json.Unmarshal([]byte(want(t, 0, "", "tree", "o2", "--json")), &tree); err != nil || tree.Events != 5 || tree.Unattended {
		t.Fatalf("the tree as JSON: %+v, %v", tree, err)
	}
	charge := tree.Root.Caused[0].Event
	want(t, 0, "caused by shop/order  o2 | ✗ bank/charge  "+charge, "tree", charge)
	want(t, 0, "… and", "tree", "o2", "--events", "2")
	want(t, 1, "there is no event o9 | check the id", "tree", "o9")
	want(t, 2, "not allowed", "tree", "o 9")
	want(t, 0, "stored", "send", "depot", "ship", "--id", "o2")
	want(t, 1, "2 events have the id o2 | depot/ship | --space", "tree", "o2")
	want(t, 0, "1 event", "tree", "o2", "--space", "depot")

	eventually(t, "2 dead letters, 2 open", "dead")
	want(t, 0, "bank | charge | failed | the card is stolen | 1 dead letter, 1 open", "dead", "bank")
	want(t, 0, `payload     {"stolen":true,"wrap":true}`, "dead", "bank", "--full")
	want(t, 0, `"payload":{"stolen":true,"wrap":true} | "outcome":"failed"`, "dead", "bank", "--json")
	want(t, 0, "no dead letters of space shop", "dead", "shop")
	want(t, 1, "no dead letter about event o1", "redrive", "shop", "o1")
	want(t, 2, "which event?", "redrive", "shop")
	want(t, 2, "not both", "redrive", "shop", "o1", "--all")

	want(t, 0, "handled", "send", "bank", "lenient", "--wait")
	want(t, 0, "sent again to bank/charge as "+charge+":r1", "redrive", "bank", charge)
	want(t, 0, "already, as "+charge+":r1", "redrive", "bank", charge)
	eventually(t, "handled (r1)", "dead", "bank")
	want(t, 0, "(sent again)", "tree", "o2", "--space", "shop")
	want(t, 0, "no dead letters of space bank that are open (1 in all: settle dead bank)", "dead", "bank", "--open")
	want(t, 2, "1 event would be sent again | --confirm 1 (`settle dead --open` lists", "redrive", "--all")
	want(t, 2, "1 event of space depot would be sent again | `settle dead depot --open` lists", "redrive", "depot", "--all")
	want(t, 2, "not 5; nothing was sent again", "redrive", "--all", "--confirm", "5")
	want(t, 0, "sent again to depot/wrap", "redrive", "--all", "--confirm", "1")
	eventually(t, "2 dead letters, 1 open", "dead", "depot")  // it was refused again
	wantSoon(t, 1, "dead letters   3 events, ever", "doctor") // the notes about what was sent again are none

	want(t, 1, "no dead letter about event o1", "dismiss", "shop", "o1")
	want(t, 2, "1 event would be dismissed | --confirm 1", "dismiss", "--all")
	want(t, 0, "dismissed; it can still be sent again: settle redrive depot", "dismiss", "--all", "--confirm", "1", "--reason", "a duplicate")
	want(t, 0, "nothing to dismiss", "dismiss", "--all")
	want(t, 0, charge+": dismissed; it had been sent again already, as "+charge+":r1", "dismiss", "bank", charge)
	want(t, 0, charge+": had been dismissed already; the first reason stays", "dismiss", "bank", charge, "--reason", "another")
	want(t, 0, "1 dead letter, 0 open | 1 more, dismissed: settle dead depot --dismissed", "dead", "depot")
	want(t, 0, "2 dead letters, 0 open | (dismissed: a duplicate) program shop has no handler", "dead", "depot", "--dismissed")
	want(t, 0, "dismissed   a duplicate", "dead", "depot", "--dismissed", "--full")
	want(t, 0, "no dead letters that are open (3 in all: settle dead --dismissed)", "dead", "--open")
	wantSoon(t, 1, "dead letters   3 events, ever", "doctor")
}

// eventually runs a command until its output has a part: coordinators write dead
// letters a moment after the receipts.
func eventually(t *testing.T, part string, args ...string) {
	t.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for begun := time.Now(); time.Since(begun) < patience; {
		if _, stdout, _ := command(t.Context(), t, args...); strings.Contains(stdout, part) {
			return
		}
		<-again.C
	}
	want(t, 0, part, args...)
}

// The work of an action does not belong to the tree of the event that has started it.
func TestTree_ATaskThatIsPendingDoesNotKeepATreeOpen(t *testing.T) {
	t.Parallel()
	running(t)
	want(t, 0, "1 event: 1 handled; settled", "send", "shop", "write", "--id", "w1", "--wait=tree")
	want(t, 0, `"state":"pending"`, "get", "shop", "letter")
	want(t, 0, "1 event: 1 handled; settled", "send", "shop", "letter", `{"key":"w1","out":"sent"}`, "--id", "end", "--wait=tree")
	want(t, 0, "1 event: 1 handled; settled", "tree", "w1", "--space", "shop")
}

func TestTree_AnyNATSClientFindsTheServiceAndAsksIt(t *testing.T) {
	t.Parallel()
	d := running(t)
	want(t, 0, "settled", "send", "shop", "order", "--id", "o1", "--wait=tree")
	nc := d.Bus().Conn()
	m, err := nc.Request("$SRV.INFO."+history.ServiceName, nil, patience)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"settle.api.tree"`, `"settle.api.receipt"`, `"settle.api.dead"`, `"queue_group":"q"`} {
		if !bytes.Contains(m.Data, []byte(part)) {
			t.Errorf("the service does not tell %s: %s", part, m.Data)
		}
	}
	m, err = nc.Request("settle.api.tree", []byte(`{"event":"o1"}`), patience)
	var tree history.Tree
	if err == nil {
		err = json.Unmarshal(m.Data, &tree)
	}
	if err != nil || tree.Events != 3 || !tree.Settled {
		t.Errorf("it answers %+v, %v", tree, err)
	}
}

func TestTree_SaysWhenThereIsNoCoordinator(t *testing.T) {
	t.Parallel()
	server := natstest.StartServer(t, embedded.Config{Listen: ":0"})
	pointAt(t, server.ClientURL())
	if _, _, stderr := command(t.Context(), t, "dead"); stderr != "settle: there is no deployment with prefix settle on this server; check --prefix, or make one: settle provision\n" {
		t.Errorf("without a deployment: %s", stderr)
	}
	b, err := bus.Connect(t.Context(), bus.Config{Server: server, Partitions: 2, Name: "worker/w1"})
	if err == nil {
		err = b.Provision(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	w, err := settle.StartWorker(t.Context(), b, settle.WorkerConfig{ID: "w1", Programs: settle.Always(shop())})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Kill)
	wantInVain(t, "P bank/charge | 2 parked; not settled | No coordinator answers | not settled within TIMEOUT | settle tree o1 --space shop",
		"send", "shop", "order", "--id", "o1", "--wait=tree")
	want(t, 0, "P depot/ship | No coordinator answers", "tree", "o1")
	const behind = "no coordinator answers; coordinators write dead letters, so this list may be behind"
	want(t, 0, behind+" | no dead letters", "dead")
	want(t, 0, behind+" | nothing to send again", "redrive", "--all")
	want(t, 1, behind+" | there is no dead letter", "redrive", "shop", "o1")
	want(t, 1, "failed", "send", "bank", "charge", `{"stolen":true}`, "--id", "c1", "--wait")
	if out := want(t, 0, "failed ones get no dead letter", "tree", "c1"); strings.Contains(out, "redrive") {
		t.Errorf("a redrive is advised that is not possible:\n%s", out)
	}
	w.Kill()
	wantInVain(t, "the event is stored, and will be handled when a worker runs its space; `settle tree o2 --space shop` shows its state",
		"send", "shop", "order", "--id", "o2", "--wait")
}

func TestSend_WaitTakesAValueOrNone(t *testing.T) {
	t.Parallel()
	want(t, 2, `--wait: use none, receipt or tree, not "forever"`, "send", "shop", "order", "--wait=forever")
	want(t, 2, `--wait: use none, receipt or tree, not ""`, "send", "shop", "order", "--wait=")
	want(t, 2, "not JSON | did you mean --wait=tree?", "send", "shop", "order", "--wait", "tree")
	want(t, 2, "unexpected argument receipt; did you mean --wait=receipt?", "send", "shop", "order", "{}", "--wait", "receipt")
	want(t, 0, "--wait[=receipt|tree]", "send", "--help")
	want(t, 2, "not JSON", "send", "shop", "order", "{", "--wait")
	want(t, 2, `not JSON | invalid character 'r' | a string is written '"room-a"', with both kinds of quotes`, "send", "site", "add-room", "room-a")
}

func TestSend_SaysWhatBecameOfTheEvent(t *testing.T) {
	t.Parallel()
	running(t)
	want(t, 1, "settle: event c1 failed: the card is stolen", "send", "bank", "charge", `{"stolen":true}`, "--id", "c1", "--wait")
	want(t, 1, "; the event was not sent", "send", "shop", "order", "--id", "o1", "--wait", "--timeout", "1ns")
	want(t, 1, "there is no event o1", "tree", "o1")
}

// The exit code depends on the whole tree, including the events that are not shown.
func TestSend_TheExitCodeOfATreeIsNotByWhatIsShown(t *testing.T) {
	t.Parallel()
	running(t)
	deep := want(t, 1, `151 events: 150 handled, 1 failed; settled; there is more than is shown | Some of what failed is not shown | 1 of 151 events were not handled`,
		"send", "hall", "down", "150", "--id", "e1", "--wait=tree")
	shown, _, _ := strings.Cut(deep, "\n\n")
	for line := range strings.SplitSeq(shown, "\n") {
		if utf8.RuneCountInString(line) > 90 { // on a terminal it is folded
			t.Errorf("it is wider than 90 columns: %s", line)
		}
	}
	want(t, 0, "150: ✗ hall/down | this is the end | settle redrive hall", "tree", "e1", "--depth", "200")
}

// An error is printed once: in words, or in the JSON that was requested.
func TestSend_AnErrorIsPrintedOnce(t *testing.T) {
	t.Parallel()
	running(t)
	const stolen, why = `{"stolen":true}`, "the card is stolen"
	code, out, stderr := command(t.Context(), t, "send", "bank", "charge", stolen, "--id", "c1", "--wait")
	if code != 1 || out != "" || strings.Count(stderr, why) != 1 {
		t.Errorf("code %d, %q, %q", code, out, stderr)
	}
	code, out, stderr = command(t.Context(), t, "send", "bank", "charge", stolen, "--id", "c2", "--wait", "--json")
	if code != 1 || out != `{"event":"c2","outcome":"failed","detail":"`+why+`"}`+"\n" || stderr != "" {
		t.Errorf("as JSON: code %d, %q, %q", code, out, stderr)
	}
	code, out, stderr = command(t.Context(), t, "send", "bank", "charge", `{"short":true}`, "--id", "c4", "--wait", "--json")
	if code != 1 || out != `{"event":"c4","outcome":"rejected","detail":"no money","code":"short","data":{"left":3}}`+"\n" || stderr != "" {
		t.Errorf("rejected, as JSON: code %d, %q, %q", code, out, stderr)
	}
	want(t, 1, `event c5 was rejected: short: no money; data {"left":3}`, "send", "bank", "charge", `{"short":true}`, "--id", "c5", "--wait")
	want(t, 0, "bank/charge  c5", "tree", "c5", "--timeout", "30s")
	var refused struct{ Outcome, Detail string }
	code, out, stderr = command(t.Context(), t, "send", "bank", "nosuch", "--wait", "--json")
	if err := json.Unmarshal([]byte(out), &refused); err != nil || code != 1 || refused.Outcome != "refused" || refused.Detail == "" || stderr != "" {
		t.Errorf("refused: code %d, %q, %q, %v", code, out, stderr, err)
	}
	want(t, 0, `{"event":"c3","lane":6,"duplicate":false}`, "send", "bank", "charge", "--id", "c3", "--json")
	want(t, 0, `{"event":"c3","duplicate":true} | had been sent before`, "send", "bank", "charge", "--id", "c3", "--json")
	var tree history.Tree
	if err := json.Unmarshal([]byte(want(t, 0, "", "send", "bank", "charge", "--id", "c3", "--wait=tree", "--json")), &tree); err != nil || tree.Root.Event != "c3" {
		t.Errorf("the tree as JSON: %+v, %v", tree, err)
	}
}

// Offsets are relative to the time in the first line, even for an event that had waited for hours.
func TestPrintTree_IsReadAtAGlance(t *testing.T) {
	t.Parallel()
	ref := func(space, stream, event string) history.EventRef {
		return history.EventRef{Space: space, Stream: stream, Event: event}
	}
	start := time.Date(2026, 11, 21, 18, 48, 36, 830e6, time.Local)
	long := strings.Repeat("no more of this. ", 20)
	tree := &history.Tree{
		CausedBy: []history.EventRef{ref("a", "two", "a:1:1:0"), ref("a", "one", "e1")},
		Events:   7, States: map[lineage.State]int{"handled": 2, "failed": 2, "queued": 1, "parked": 1, "refused": 1},
		Root: &history.TreeNode{EventRef: ref("a", "order", "a:1:2:0"), State: "handled", Sent: start, Ended: start.Add(2 * time.Millisecond), Caused: []*history.TreeNode{
			{EventRef: ref("b", "charge", "a:1:3:0"), State: "failed", Ended: start.Add(1234 * time.Millisecond), Error: "line one\nline two", Caused: []*history.TreeNode{
				{EventRef: ref("b", "charge", "a:1:3:0:r1"), State: "failed", Kind: "redrive", Error: long},
			}},
			{EventRef: ref("c", "ship", "a:1:3:1"), State: "queued", Lane: 9, Sent: start.Add(5 * time.Millisecond)},
			{EventRef: ref("d", "ship", "a:1:3:2"), State: "parked"},
			{EventRef: ref("d", "wrap", "a:1:3:3"), State: "refused", Error: "no handler", Caused: []*history.TreeNode{
				{EventRef: ref("a", "undelivered", "a:1:3:3:undelivered"), State: "handled", Kind: "notice"},
			}},
		}},
	}
	var out bytes.Buffer
	printTree(&out, tree, false)
	const text = `caused by a/one  e1
caused by a/two  a:1:1:0
✓ a/order  a:1:2:0                          handled   2026-11-21 18:48:36.832
├─ ✗ b/charge  a:1:3:0                      failed    +1232ms  line one line two
│  └─ ✗ b/charge  a:1:3:0:r1                failed             (sent again) no more of this. no more of this. no more of this. no more of this. no more of this. n…
├─ . c/ship  a:1:3:1                        queued    +3ms     at lane sequence 9
├─ P d/ship  a:1:3:2                        parked
└─ ✗ d/wrap  a:1:3:3                        refused            no handler
   └─ ✓ a/undelivered  a:1:3:3:undelivered  handled            (tells the origin)

7 events: 2 handled, 2 failed, 1 refused, 1 queued, 1 parked; not settled.
  Parked for long? A coordinator puts it into its lane; its log says what keeps it from that.
  Queued for long? No worker may be running, or an earlier event takes long.
  When the cause is repaired, send it again: settle redrive b a:1:3:0:r1 --stream charge
  When the cause is repaired, send it again: settle redrive d a:1:3:3 --stream wrap
  … stands for the rest of a long text; all of it: settle tree a:1:2:0 --space a --full
`
	if out.String() != text {
		t.Errorf("it looks like\n%s\nwant\n%s", out.String(), text)
	}
}

// A deep tree is not wider than a terminal.
func TestPrintTree_NumbersTakeThePlaceOfDeepIndentation(t *testing.T) {
	t.Parallel()
	leaf := func(id string) *history.TreeNode {
		return &history.TreeNode{EventRef: history.EventRef{Space: "a", Stream: "s", Event: id}, State: "handled"}
	}
	root := leaf("e0")
	at := root
	for i := 1; i <= 7; i++ {
		next := leaf(fmt.Sprint("e", i))
		at.Caused = []*history.TreeNode{next}
		if i == 5 || i == 6 {
			at.Caused = append(at.Caused, leaf(fmt.Sprint("f", i)))
		}
		at = next
	}
	at.More = 2
	var out bytes.Buffer
	printTree(&out, &history.Tree{Root: root, Events: 10, More: true, States: map[lineage.State]int{"handled": 10}}, false)
	const text = `
         └─ ✓ a/s  e4        handled
            ├─ ✓ a/s  e5     handled
            │  6: ✓ a/s  e6  handled
            │  7: ✓ a/s  e7  handled
            │  8: … and 2 more
            │  6: ✓ a/s  f6  handled
            └─ ✓ a/s  f5     handled

`
	if !strings.Contains(out.String(), text) {
		t.Errorf("it looks like\n%s\nwant\n%s", out.String(), text)
	}
}

func TestPrintTree_InFullKeepsTheLinesOfAnError(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 21, 18, 48, 36, 830e6, time.Local)
	long := strings.Repeat("no more of this. ", 20)
	tree := &history.Tree{
		Events: 4, More: true, States: map[lineage.State]int{"failed": 4},
		Root: &history.TreeNode{EventRef: history.EventRef{Space: "a", Stream: "order", Event: "e1"}, State: "failed", Sent: start, Ended: start, Error: "one\ntwo", Caused: []*history.TreeNode{
			{EventRef: history.EventRef{Space: "b", Stream: "s", Event: "x"}, State: "failed", Ended: start.Add(216 * time.Second), Error: "three\n" + long, More: 1},
			{EventRef: history.EventRef{Space: "b", Stream: "s", Event: "y"}, State: "failed", Ended: start.Add(9999 * time.Millisecond), Error: "four\nfive"},
		}},
	}
	var out bytes.Buffer
	printTree(&out, tree, true)
	text := `✗ a/order  e1  failed    2026-11-21 18:48:36.830  one
│                                 two
├─ ✗ b/s  x    failed    +3m36s   three
│  │                              ` + strings.TrimSpace(long) + `
│  └─ … and 1 more
└─ ✗ b/s  y    failed    +9999ms  four
                                  five

4 events: 4 failed; there is more than is shown: see --events and --depth.
  When the cause is repaired, send it again: settle redrive a e1 --stream order
  Whether x was sent again is not shown: see --depth and --events
  When the cause is repaired, send it again: settle redrive b y --stream s
`
	if out.String() != text {
		t.Errorf("it looks like\n%s\nwant\n%s", out.String(), text)
	}
}

func TestAfter_IsExactWhereItMatters(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-3 * time.Millisecond: "-3ms", 0: "+0ms", 9999 * time.Millisecond: "+9999ms",
		10 * time.Second: "+10s", 216400 * time.Millisecond: "+3m36s", -12 * time.Second: "-12s",
	} {
		if got := after(d); got != want {
			t.Errorf("%d ns: %q, want %q", d, got, want)
		}
	}
}

// The effects of a forgotten event are unknown, so the summary must not say that nothing is open.
func TestTree_OfAForgottenEventDoesNotSayThatNothingIsOpen(t *testing.T) {
	t.Parallel()
	tree := &history.Tree{Events: 2, Settled: true, States: map[lineage.State]int{lineage.Handled: 1, lineage.Forgotten: 1}}
	if got, want := summary(tree), "2 events: 1 handled, 1 forgotten; nothing that is known of it is open; what a forgotten event has caused is not known."; got != want {
		t.Errorf("%s\nwant: %s", got, want)
	}
	tree.States = map[lineage.State]int{lineage.Handled: 2}
	if got, want := summary(tree), "2 events: 2 handled; settled: nothing of it is open."; got != want {
		t.Errorf("%s\nwant: %s", got, want)
	}
}
