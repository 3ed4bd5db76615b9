package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/settletest"
)

// till returns a program with everything that a recording can contain: events that succeed and fail,
// follow-ups, sends to other spaces, a timer, a task, a computation.
func till(price int64) *settle.Program {
	receipt := settle.NewAction[string, string]("receipt")
	p := settle.NewProgram("till")
	receipt.Perform(p, func(_ context.Context, _, text string) (string, error) { return text + " printed", nil })
	receipt.Done(p, func(tx *settle.Tx, task settle.Task[string, string]) error {
		tx.Set("printed", task.Out)
		return task.Err
	})
	return p.
		Handle("buy", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
			n, _ := ev.Payload.AsInt()
			if n > 5 {
				return settle.Value{}, fmt.Errorf("%d are too many", n)
			}
			had, _ := tx.Get("owed").AsInt()
			tx.Set("owed", had+n*price)
			tx.Send(tx.Space(), "note", n)
			tx.Send("depot", "ship", n)
			if n == 5 {
				receipt.Start(tx, ev.ID, "five")
			}
			return settle.ValueOf(had + n*price)
		}).
		Handle("note", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
			n, _ := tx.Get("noted").AsInt()
			tx.Set("noted", n+1)
			return settle.Value{}, nil
		}).
		Handle("ship", func(*settle.Tx, *settle.Event) (settle.Value, error) { return settle.Value{}, nil }).
		Compute("doubled", func(v *settle.View) (settle.Value, error) {
			n, _ := v.Get("owed").AsInt()
			return settle.ValueOf(2 * n)
		})
}

// complaints is a TB that records the failures of a test.
type complaints struct {
	testing.TB
	all []string
}

func (c *complaints) Errorf(format string, args ...any) {
	c.all = append(c.all, fmt.Sprintf(format, args...))
}

func (c *complaints) Fatalf(format string, args ...any) {
	c.Errorf(format, args...)
	panic(errFatal)
}

var errFatal = errors.New("the test ends")

// A test replays the history of a space of a deployment, with the same result; with a program that
// behaves differently, the test reports the differences.
func TestReplay_OfAProgramInGo(t *testing.T) {
	t.Parallel()
	started(t, settle.Config{Programs: settle.Always(till(3))})
	want(t, 0, "handled", "send", "shop", "buy", "2", "--id", "b1", "--wait=tree")
	want(t, 1, "9 are too many", "send", "shop", "buy", "9", "--id", "b2", "--wait")
	want(t, 0, "handled", "send", "shop", "buy", "5", "--id", "b3", "--wait=tree")
	want(t, 0, "stored", "send", "shop", "buy", "1", "--id", "later", "--at", time.Now().Add(time.Hour).Format(time.RFC3339))
	want(t, 0, "handled", "send", "shop", "buy", "1", "--id", "b4", "--wait=tree")
	written := filepath.Join(t.TempDir(), "in.jsonl")
	if err := os.WriteFile(written, []byte(`{"space":"shop","document":"note","value":{"by":"hand"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, 0, "1 document of 1 space written", "import", written)
	wantSoon(t, 0, "five printed", "get", "shop", "printed")
	want(t, 0, "48", "get", "shop", "doubled")
	want(t, 0, "sent again", "redrive", "shop", "b2")
	wantSoon(t, 0, "b2:r1", "receipts", "shop")

	dir := filepath.Join(t.TempDir(), "replayed")
	want(t, 2, "not a package name", "replay", "shop", dir, "--package", "a b")
	want(t, 2, "not a Go expression", "replay", "shop", dir, "--call", "till(")
	want(t, 1, "there is no space nowhere", "replay", "nowhere", dir)
	want(t, 1, "the last commit of space shop is at", "replay", "shop", dir, "--from", "100000")
	want(t, 0, "events, 1 transaction without one, | see that till(3) makes it", "replay", "shop", dir, "--call", "till(3)", "--package", "main")
	want(t, 2, "is not empty", "replay", "shop", dir)
	code, err := os.ReadFile(filepath.Join(dir, "replay_shop_test.go"))
	if err != nil || !strings.Contains(string(code), `settletest.Replay(t, till(3), "testdata/shop.jsonl")`) {
		t.Fatalf("%s, %v", code, err)
	}
	recording := filepath.Join(dir, "testdata", "shop.jsonl")
	w := settletest.Replay(t, till(3), recording)
	if n := len(w.Undelivered()); n != 3 {
		t.Errorf("%d events were sent to the depot", n)
	}
	w.Space("shop").Expect("doubled", 48)

	sent := filepath.Join(t.TempDir(), "sent") // a space to which another one has sent
	want(t, 0, "3 events", "replay", "depot", sent)
	settletest.Replay(t, till(3), filepath.Join(sent, "testdata", "depot.jsonl"))

	c := &complaints{TB: t}
	settletest.Replay(c, till(4), recording)
	said := strings.Join(c.all, "\n")
	for _, part := range []string{"event b1 of stream buy", "the result is 8 here, and was 6", "document owed is 32 here, and was 24"} {
		if !strings.Contains(said, part) {
			t.Errorf("no %q in\n%s", part, said)
		}
	}
}

// A damaged recording is refused with the number of the line, and a recording may begin at a later
// revision.
func TestReplay_BeginsLaterAndRefusesNonsense(t *testing.T) {
	t.Parallel()
	started(t, settle.Config{Programs: settle.Always(till(3))})
	for i := range 4 {
		want(t, 0, "handled", "send", "shop", "buy", "1", "--id", fmt.Sprint("b", i), "--wait=tree")
	}
	out := want(t, 0, "handled", "receipts", "shop", "--json")
	from := revisionOf(t, out, "b1")
	dir := filepath.Join(t.TempDir(), "late")
	want(t, 0, "it begins with 2 documents as at revision "+from, "replay", "shop", dir, "--from", from)
	recording := filepath.Join(dir, "testdata", "shop.jsonl")
	settletest.Replay(t, till(3), recording)
	text, err := os.ReadFile(recording)
	if err != nil || strings.Contains(string(text), `"b1"`) || !strings.Contains(string(text), `"b2"`) {
		t.Fatalf("%s, %v", text, err)
	}
	for spoilt, says := range map[string]string{
		"": "the recording is empty", "{}": "another format", string(text) + "{\"x\":1}\n": "line ",
		string(text) + "{\"value\":1}\n":               "neither a document, nor an event, nor writes",
		string(text) + "{\"before\":\"a b\"}\n":        "document",
		strings.Replace(string(text), "{", "", 1):      "line 1 of the recording",
		string(text) + `{"stream":"buy"}` + "\n":       "event id",
		strings.Replace(string(text), `:1,`, `:9,`, 1): "another format",
	} {
		if err := os.WriteFile(recording, []byte(spoilt), 0o600); err != nil {
			t.Fatal(err)
		}
		c := &complaints{TB: t}
		func() {
			defer func() {
				if r := recover(); r != nil && r != errFatal { //nolint:errorlint // it is that very one
					panic(r)
				}
			}()
			settletest.Replay(c, till(3), recording)
		}()
		if said := strings.Join(c.all, "\n"); !strings.Contains(said, says) {
			t.Errorf("of %.60q it says %q, want %q", spoilt, said, says)
		}
	}
}

// revisionOf returns the revision of the receipt of an event.
func revisionOf(t *testing.T, receipts, event string) string {
	t.Helper()
	for line := range strings.Lines(receipts) {
		if strings.Contains(line, `"`+event+`"`) {
			_, rest, _ := strings.Cut(line, `,"log":`)
			return strings.TrimRight(strings.FieldsFunc(rest, func(r rune) bool { return r == ',' || r == '}' || r == '\n' })[0], " ")
		}
	}
	t.Fatalf("no receipt of %s in\n%s", event, receipts)
	return ""
}

// A space with a deployed program becomes a directory for `settle test`, with the deployed program; if
// the program is changed there, the test reports different results.
func TestReplay_OfADeployedProgram(t *testing.T) {
	t.Parallel()
	hosting(t)
	one := file(t, t.TempDir(), "cart.star", cart("2", "1")+`
def open(e):
    if e == "never":
        fail("the \"door\" is\nlocked")
    set_timer("close", "close", after = "20ms")
    items.n += 10
    if e == "wide" and space() != "cart-1":
        send("cart-1", "open", "sent")
handle("open", open)
def close(e):
    items.n += 100
handle("close", close)
`)
	want(t, 0, "deployed", "deploy", one, "--space", "*")
	want(t, 0, "handled", "send", "cart-1", "add", "--id", "a1", "--wait")
	want(t, 0, "handled", "send", "cart-1", "open", `"wide"`, "--id", "o1", "--wait")
	want(t, 1, "is", "send", "cart-1", "open", `"never"`, "--id", "o2", "--wait")
	wantSoon(t, 0, "111", "get", "cart-1", "items")
	want(t, 0, "sent again", "redrive", "cart-1", "o2")
	wantSoon(t, 0, "o2:r1", "receipts", "cart-1")
	want(t, 0, "handled", "send", "cart-2", "open", `"wide"`, "--id", "o3", "--wait=tree")
	dir := filepath.Join(t.TempDir(), "replayed")
	want(t, 0, "5 events, 1 document | next: settle test", "replay", "cart-1", dir)
	want(t, 0, "ok | 1 test", "test", dir)
	program := filepath.Join(dir, "cart.star")
	text, err := os.ReadFile(program)
	if err == nil {
		err = os.WriteFile(program, []byte(strings.Replace(string(text), "items.n += 1\n", "items.n += 2\n", 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	want(t, 1, "FAIL | event a1 of stream add | the result is 2 here, and was 1", "test", dir)
}
