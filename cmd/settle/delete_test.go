package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/cron"
	"github.com/settlehq/settle/internal/erase"
	"github.com/settlehq/settle/model"
)

var (
	ticks  = settle.NewStream[cron.Tick]("tick")
	alarms = settle.NewStream[string]("alarm")
)

// keeping returns a program that keeps, derives, passes on and fails with what it gets.
func keeping() *settle.Program {
	p := passing()
	ticks.Handle(p, func(*settle.Tx, cron.Tick) error { return nil })
	p.Cron("hourly", "0 * * * *", ticks)
	alarms.Handle(p, func(*settle.Tx, string) error { return nil })
	return p.
		Handle("keep", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
			tx.Set("kept", ev.Payload)
			text, _ := ev.Payload.AsString()
			alarms.SetTimer(tx, "remind", tx.Now().Add(time.Hour), text)
			n, _ := tx.Get("times").AsInt()
			tx.Set("times", n+1)
			return ev.Payload, nil
		}).
		Handle("lose", func(*settle.Tx, *settle.Event) (settle.Value, error) { return settle.Value{}, errors.New("it fails") }).
		Compute("copy", func(v *settle.View) (settle.Value, error) { return v.Get("kept"), nil })
}

// A space that is deleted has no documents, receipts, dead letters or events in any stream; what it has handled is not handled again, from
// any sender, and its next event begins it anew. Other spaces keep what they have.
func TestDelete_LeavesNothingOfASpace(t *testing.T) {
	t.Parallel()
	url := ownServer(t, t.TempDir())
	d := begun(t, settle.Config{Programs: settle.Always(keeping()), Bus: bus.Config{URL: url, Partitions: 2}})
	gone, beside := spaceIn(0), besideIn(0)
	const secret = `"CANARY7Q"`
	want(t, 1, "there is no such space", "delete", gone, "--yes")
	for _, space := range []string{gone, beside} {
		want(t, 0, "handled", "send", space, "keep", secret, "--id", "k1", "--wait")
		want(t, 1, "it fails", "send", space, "lose", secret, "--id", "f1", "--wait")
	}
	want(t, 0, "settled", "send", beside, "pass", `"`+gone+`"`, "--id", "p1", "--wait=tree")
	want(t, 0, secret, "get", gone, "copy")
	wantSoon(t, 0, "f1", "dead", gone)

	want(t, 1, "has 5 documents, and 0 events that wait | nothing was changed", "delete", gone)
	want(t, 0, "", "send", gone, "keep", secret, "--id", "later", "--after", "1h")
	wantSoon(t, 1, "1 events wait in space "+gone+", the first is keep/later", "delete", gone, "--yes")
	if err := erase.Space(t.Context(), d.Bus(), gone); !errors.Is(err, erase.ErrWaiting) {
		t.Errorf("an event that came since the command looked: %v", err)
	}
	want(t, 0, "cancelled | space "+gone+" is deleted", "delete", gone, "--yes", "--force")

	// What is astray, what is no event, and records that contain commits.
	js, other := d.Bus().JetStream(), 1-model.PartitionOf(gone, 2)
	for _, m := range []*nats.Msg{
		{Subject: fmt.Sprintf("settle.send.%d.%s.keep.astray", other, gone)},
		{Subject: fmt.Sprintf("settle.send.%d.%s.keep.filled", model.PartitionOf(gone, 2), gone), Header: nats.Header{"Settle-Fill": {"1"}}},
		{Subject: fmt.Sprintf("settle.send.%d.%s.keep.none=such", model.PartitionOf(gone, 2), gone)},
		{Subject: fmt.Sprintf("settle.send.%d.%s.keep.none=such", other, gone)},
	} {
		m.Data = []byte(secret)
		if _, err := js.PublishMsg(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	want(t, 0, "handled", "send", gone, "keep", secret, "--id", "last", "--wait")
	wantSoon(t, 0, "astray", "receipts", gone)
	item := model.StateDoc{Doc: model.StateKeyOfQuarantine(3), Seq: 1, Data: []byte(`{"note":` + secret + `}`)}
	if err := d.Bus().SaveState(t.Context(), gone, []model.StateDoc{item}, nil); err != nil {
		t.Fatal(err)
	}
	want(t, 0, "space "+gone+" is deleted", "delete", gone, "--yes")

	if found := where(t, d, []byte("CANARY7Q"), gone); len(found) > 0 {
		t.Errorf("what was deleted is in %q", found)
	}
	want(t, 1, "", "get", gone, "kept")
	want(t, 0, "no dead letter", "dead", gone)
	saysNot(t, want(t, 0, "", "receipts", gone), "k1")
	want(t, 0, secret, "get", beside, "kept")
	wantSoon(t, 0, "f1", "dead", beside)

	// What was handled before is not handled again, and what is new is.
	if _, err := d.Client().Send(t.Context(), settle.Outgoing{Space: gone, Stream: "keep", ID: settle.ID("k1"), Payload: settle.Value{}}); err != nil {
		t.Fatal(err)
	}
	want(t, 0, "handled", "send", gone, "keep", `"anew"`, "--id", "k2", "--wait")
	want(t, 0, "1", "get", gone, "times")
	want(t, 0, `"anew"`, "get", gone, "copy")
	want(t, 0, "settled", "send", beside, "pass", `"`+gone+`"`, "--id", "p2", "--wait=tree")
	want(t, 0, "1", "get", gone, "n")
	want(t, 0, "space "+gone+" is deleted", "delete", gone, "--yes")
	want(t, 0, "space "+gone+" is deleted: 0 documents", "delete", gone, "--yes")
	want(t, 0, "settle delete "+gone+" --yes", "audit")

	// A deployment that is closed is no obstacle: the space is not loaded by a read.
	want(t, 0, "handled", "send", gone, "keep", secret, "--id", "k3", "--wait")
	want(t, 0, "This is the first rule", "allow", "alice", "--read", "nothing/nothing")
	want(t, 0, "space "+gone+" is deleted: 2 documents", "delete", gone, "--yes")
}

// A clone has nothing of a space that was deleted, nor of earlier versions of what it had; once the streams of the deployment that it was made from are removed, no
// file of the servers contains it (docs/adr/0050).
func TestDelete_NoFileHasItOnceTheDeploymentIsACloneOfItself(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	url := ownServer(t, store)
	d := begun(t, settle.Config{Programs: settle.Always(keeping()), Bus: bus.Config{URL: url, Partitions: 2}})
	gone, beside := spaceIn(0), besideIn(0)
	for i := range 5 { // earlier versions of documents, in the same files
		want(t, 0, "handled", "send", gone, "keep", fmt.Sprintf(`"CANARY-%d"`, i), "--id", fmt.Sprintf("k%d", i), "--wait")
		want(t, 0, "handled", "send", beside, "keep", fmt.Sprintf(`"BESIDE-%d"`, i), "--id", fmt.Sprintf("k%d", i), "--wait")
	}
	want(t, 1, "it fails", "send", gone, "lose", `"CANARY-f"`, "--id", "f1", "--wait")
	wantSoon(t, 0, "f1", "dead", gone)
	want(t, 0, "space "+gone+" is deleted", "delete", gone, "--yes")
	if len(filesWith(t, store, "CANARY-")) == 0 {
		t.Error("deleting has erased already: docs/adr/0050 and docs/security.md say that bytes may remain")
	}

	want(t, 0, "deployment moved", "clone", "moved")
	if err := d.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	var old []string
	b, err := bus.Connect(t.Context(), bus.Config{URL: url, Prefix: "moved"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Kill)
	js := b.JetStream()
	for name := range js.StreamNames(t.Context()).Name() {
		if strings.HasPrefix(name, "SETTLE_") || strings.HasPrefix(name, "KV_SETTLE_") {
			old = append(old, name)
		}
	}
	for _, name := range old {
		if err := js.DeleteStream(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	if len(old) != 9 {
		t.Errorf("the deployment had the streams %q", old)
	}
	again := time.NewTicker(20 * time.Millisecond) // the server removes files in the background
	defer again.Stop()
	for begun := time.Now(); ; <-again.C {
		found := filesWith(t, store, "CANARY-")
		if len(found) == 0 {
			break
		}
		if time.Since(begun) > time.Minute {
			t.Fatalf("what was deleted is in %q", found)
		}
	}
	if len(filesWith(t, store, "BESIDE-4")) == 0 {
		t.Error("the space beside it has gone, too, or the files are not read")
	}
	want(t, 0, `"BESIDE-4"`, "get", beside, "kept", "--prefix", "moved", "--confirmed")
}

// filesWith returns the files below a directory that contain a text.
func filesWith(t *testing.T, dir, text string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if bytes.Contains(b, []byte(text)) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// where returns the subjects of the messages of a space, in all streams, that contain a text.
func where(t *testing.T, d *settle.Deployment, text []byte, space string) (found []string) {
	t.Helper()
	js := d.Bus().JetStream()
	streams := js.ListStreams(t.Context())
	for info := range streams.Info() {
		s, err := js.Stream(t.Context(), info.Config.Name)
		if err != nil {
			t.Fatal(err)
		}
		for seq := max(1, info.State.FirstSeq); seq <= info.State.LastSeq; seq++ {
			m, err := s.GetMsg(t.Context(), seq)
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(m.Data, text) && bytes.Contains([]byte("."+m.Subject+"."), []byte("."+space+".")) {
				found = append(found, m.Subject)
			}
		}
	}
	if err := streams.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}
