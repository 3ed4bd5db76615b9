package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
)

// deployed runs a program on a server that commands can reach, and returns its URL.
func deployed(t *testing.T, p *settle.Program) (url string, client *settle.Client) {
	t.Helper()
	server := natstest.StartServer(t, embedded.Config{Listen: ":0"})
	d, err := settle.Start(t.Context(), settle.Config{Programs: settle.Always(p), Bus: bus.Config{Server: server, Partitions: 1}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return server.ClientURL(), d.Client()
}

func orders() *settle.Program {
	return settle.NewProgram("orders").
		Handle("order", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
			n, _ := tx.Get("n").AsInt()
			tx.Set("n", n+1)
			tx.Send("warehouse", "pick", n)
			return settle.ValueOf(map[string]any{"number": n + 1, "note": strings.Repeat("long ", 40)})
		}).
		Handle("pick", func(*settle.Tx, *settle.Event) (settle.Value, error) { return settle.Value{}, nil }).
		Handle("flaky", func(*settle.Tx, *settle.Event) (settle.Value, error) {
			return settle.Value{}, settle.Transient(errors.New("not today"))
		}).
		Handle("cancel", func(*settle.Tx, *settle.Event) (settle.Value, error) {
			return settle.Value{}, errors.New("too late:\nit is on its way")
		})
}

func TestReceipts_PrintsHowEventsHaveEnded(t *testing.T) {
	t.Parallel()
	url, client := deployed(t, orders())
	for i := range 3 {
		for _, stream := range []string{"order", "cancel", "nosuch"} {
			if _, err := client.Call(t.Context(), settle.Outgoing{Space: "alice", Stream: stream, ID: settle.ID(fmt.Sprint(stream, "-", i))}); err != nil {
				t.Fatal(err)
			}
		}
	}
	receipts := func(args ...string) (lines []string) {
		t.Helper()
		code, out, stderr := command(t.Context(), t, append([]string{"receipts", "--nats", url}, args...)...)
		if code != 0 {
			t.Fatalf("code %d: %s", code, stderr)
		}
		t.Logf("settle receipts %v\n%s%s", args, out, stderr)
		return strings.Split(strings.TrimSpace(out), "\n")
	}
	long := strings.TrimSpace(strings.Repeat("long ", 40))
	if cut, full := receipts("alice"), receipts("alice", "--full"); strings.Contains(strings.Join(cut, "\n"), long) || !strings.Contains(strings.Join(full, "\n"), long) {
		t.Errorf("results are cut short: %v; and with --full: %v", cut, full)
	}

	all := receipts("alice")
	if len(all) != 1+9 || !strings.HasPrefix(all[0], "LOG ") {
		t.Fatalf("%d lines", len(all))
	}
	for i, want := range []string{
		"order-0 handled {\"note\":\"long long", "cancel-0 failed too late: it is on its way", "nosuch-0 refused program orders has no handler",
	} {
		if line := strings.Join(strings.Fields(all[1+i]), " "); !strings.Contains(line, want) {
			t.Errorf("line %d is %q, want %q", i, line, want)
		}
	}
	if !strings.HasSuffix(all[1], "…  -> warehouse/pick") {
		t.Errorf("what was sent is not named: %q", all[1])
	}
	if last := receipts("alice", "-n", "2"); len(last) != 3 || !strings.Contains(last[1], "cancel-2") || !strings.Contains(last[2], "nosuch-2") {
		t.Errorf("the last two: %q", last)
	}
	if failed := receipts("alice", "--outcome", "failed"); len(failed) != 4 {
		t.Errorf("%d lines of failed ones", len(failed))
	}
	one := receipts("alice", "--stream", "order", "-n", "1", "--json")
	var got struct {
		Space, Stream, Event, Outcome, Transaction, Runtime, Time string
		Result                                                    map[string]any
		Sends                                                     []struct{ ID, To, Stream string }
		Log, Lane                                                 uint64
	}
	if err := json.Unmarshal([]byte(one[0]), &got); err != nil || len(one) != 1 {
		t.Fatalf("%d lines, %v", len(one), err)
	}
	if got.Event != "order-2" || got.Outcome != "handled" || got.Result["number"] != 3.0 || got.Lane == 0 || got.Log == 0 ||
		len(got.Sends) != 1 || got.Sends[0].To != "warehouse" || got.Runtime == "" || got.Time == "" || !strings.HasPrefix(got.Transaction, "alice:") {
		t.Errorf("%+v", got)
	}
	if _, err := client.Call(t.Context(), settle.Outgoing{Space: "alice", Stream: "flaky", ID: settle.ID("f")}); err != nil {
		t.Fatal(err)
	}
	if tried := receipts("alice", "--stream", "flaky"); !strings.HasSuffix(tried[1], "not today  (5 attempts)") {
		t.Errorf("%q", tried)
	}
	if code, out, stderr := command(t.Context(), t, "receipts", "--nats", url, "unknown", "--stream", "ordr"); code != 0 || out != "" || !strings.HasPrefix(stderr, "space unknown has no receipts that match --stream ordr:") || !strings.Contains(stderr, "check the names") {
		t.Errorf("code %d, %q, %q", code, out, stderr)
	}
}

func TestReceipts_BadQuestionsEndWithCode2(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"a.b"}, `space "a.b"`},
		{[]string{"alice", "--stream", "*"}, `stream "*"`},
		{[]string{"alice", "--outcome", "lost"}, `outcome "lost": an event ends as handled, failed, rejected, refused, cancelled or expired`},
		{[]string{"alice", "--last=-1"}, "the last -1 receipts"},
		{nil, "expected \"<space>\""},
	} {
		code, _, stderr := command(t.Context(), t, append([]string{"receipts"}, c.args...)...)
		if code != 2 || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: code %d, %q", c.args, code, stderr)
		}
	}
}

func TestReceipts_FollowGoesOnUntilItIsInterrupted(t *testing.T) {
	t.Parallel()
	url, client := deployed(t, orders())
	call := func(id string) {
		t.Helper()
		if _, err := client.Call(t.Context(), settle.Outgoing{Space: "alice", Stream: "order", ID: settle.ID(id)}); err != nil {
			t.Fatal(err)
		}
	}
	call("one")
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	read, write := io.Pipe()
	ended := make(chan int, 1)
	go func() { // ends with ctx
		ended <- run(ctx, []string{"receipts", "--nats", url, "alice", "--follow", "--json"}, write, io.Discard)
		write.Close()
	}()
	lines := json.NewDecoder(read)
	for i := range 3 {
		var got struct{ Event string }
		if err := lines.Decode(&got); err != nil {
			t.Fatal(err)
		}
		if want := []string{"one", "two", "three"}[i]; got.Event != want {
			t.Errorf("receipt %d is of %s, want %s", i, got.Event, want)
		}
		switch i {
		case 0:
			call("two")
			call("three")
		case 2:
			interrupt()
		}
	}
	if code := <-ended; code != 0 {
		t.Errorf("interrupted with code %d", code)
	}
}
