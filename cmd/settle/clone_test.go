package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
)

// copyOf runs workers of a clone.
func copyOf(t *testing.T, url, prefix string) *settle.Client {
	t.Helper()
	b, err := bus.Connect(t.Context(), bus.Config{URL: url, Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	w, err := settle.StartWorker(t.Context(), b, settle.WorkerConfig{ID: "c1", Programs: settle.Always(counter())})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Kill)
	client, err := settle.NewClient(b, settle.ClientConfig{ID: "c"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func intOf(t *testing.T, client *settle.Client, space, doc string) int64 {
	t.Helper()
	v, _, err := client.Space(space).Get(t.Context(), doc)
	if err != nil {
		t.Fatal(err)
	}
	n, _ := v.AsInt()
	return n
}

// A busy deployment is cloned to another number of partitions; a killed clone continues when it is run
// again, with all changes and deletions since then.
func TestClone_UnderLoadGoesOnAfterItWasKilled(t *testing.T) {
	d := counting(t, 1)
	const spaces = 30
	for i := range spaces {
		want(t, 0, "stored", "send", fmt.Sprint("s", i), "add", "--wait=none")
	}
	a, err := attach(t.Context(), d.Bus(), "s0", "hand")
	if err == nil {
		err = a.Transact(t.Context(), "hand", func(tx *settle.Tx) error { tx.Set("written", "by hand"); return nil })
	}
	if err != nil {
		t.Fatal(err)
	}
	sending, stop := context.WithCancel(t.Context())
	defer stop()
	var sender sync.WaitGroup
	acknowledged := make([]int64, spaces)
	sender.Go(func() { // ends with sending
		for i := 0; sending.Err() == nil; i++ {
			if _, err := d.Client().Call(sending, settle.Outgoing{Space: fmt.Sprint("s", i%spaces), Stream: "add", ID: settle.ID(fmt.Sprint("e", i))}); err == nil {
				acknowledged[i%spaces]++
			} else if sending.Err() == nil {
				t.Errorf("send: %v", err)
				return
			}
		}
	})

	killed, kill := context.WithCancel(t.Context())
	defer kill()
	var errs bytes.Buffer
	first := cloneCmd{connection: connection{NATS: urlOf(t), Prefix: "settle"}, Name: "copy", Partitions: 5, copied: func(space string) {
		if space == "s0" {
			kill()
		}
	}}
	if err := first.Run(killed, streams{out: io.Discard, err: &errs, now: time.Now}); err == nil || !strings.Contains(err.Error(), "run it again to continue") {
		t.Fatalf("killed in the middle: %v\n%s", err, &errs)
	}
	if err := a.Transact(t.Context(), "hand", func(tx *settle.Tx) error { tx.Delete("written"); return nil }); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(t, 0, "2 partitions", "provision", "--prefix", "third", "--partitions", "2")
	want(t, 1, "is a clone of settle that is not complete, not of third", "clone", "copy", "--prefix", "third", "--to", d.Server().ClientURL())
	stop()
	sender.Wait()
	want(t, 0, "deployment copy: 5 partitions, 30 spaces; | 1 removed", "clone", "copy")
	want(t, 1, "is a clone of settle that was completed", "clone", "copy")

	client := copyOf(t, d.Server().ClientURL(), "copy")
	for i := range spaces {
		space := fmt.Sprint("s", i)
		was := intOf(t, d.Client(), space, "n")
		if is := intOf(t, client, space, "n"); is != was || is < acknowledged[i] {
			t.Errorf("n of %s is %d there and %d here; %d were acknowledged", space, is, was, acknowledged[i])
		}
	}
	if v, _, err := client.Space("s0").Get(t.Context(), "written"); err != nil || !v.IsAbsent() {
		t.Errorf("what was deleted here is there: %v, %v", v, err)
	}
	before := intOf(t, client, "s1", "n")
	if _, err := client.Call(t.Context(), settle.Outgoing{Space: "s1", Stream: "add", ID: settle.ID("new")}); err != nil {
		t.Fatal(err)
	}
	if n := intOf(t, client, "s1", "n"); n != before+1 {
		t.Errorf("the clone continues with %d after %d", n, before)
	}
	t.Setenv("SETTLE_PREFIX", "copy")
	untilValue(t, fmt.Sprint(2*(before+1)), "s1", "double")
	if n := intOf(t, d.Client(), "s1", "n"); n != before {
		t.Errorf("what is done in the clone is seen here: %d, and was %d", n, before)
	}
}

// Deployed programs and their rules are cloned, too; existing data is left alone, and the command asks about
// tasks that are not done.
func TestClone_TakesProgramsAndLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	d := hosting(t)
	want(t, 0, "deployed", "deploy", file(t, t.TempDir(), "cart.star", cart("2", "1")), "--space", "*")
	want(t, 0, "handled", "send", "cart-1", "add", "--wait")
	want(t, 2, "cannot be cloned to itself", "clone", "settle")
	want(t, 2, "prefix", "clone", "a b")
	want(t, 0, "deployment copy: 2 partitions, 1 space; 1 document written, 0 there already, 0 removed", "clone", "copy")
	if got, there := want(t, 0, "cart", "versions"), want(t, 0, "cart", "versions", "--prefix", "copy"); strings.Count(got, "\n") != strings.Count(there, "\n") {
		t.Errorf("versions are\n%s\nand there\n%s", got, there)
	}
	want(t, 0, `items | {"n":1}`, "get", "cart-1", "--prefix", "copy")
	b, err := bus.Connect(t.Context(), bus.Config{URL: d.Server().ClientURL(), Prefix: "other", Partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	if err := b.Provision(t.Context()); err != nil {
		t.Fatal(err)
	}
	a, err := attach(t.Context(), b, "mine", "hand")
	if err == nil {
		err = a.Transact(t.Context(), "hand", func(tx *settle.Tx) error { tx.Set("written", "by hand"); return nil })
	}
	if err == nil {
		err = a.Close(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	want(t, 1, "deployment other has 1 space already (mine)", "clone", "other")
}
