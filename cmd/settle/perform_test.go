package main

import (
	"bufio"
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/settlehq/settle/bus/embedded"
)

// background starts a command, and returns a function that interrupts it and returns what it has printed.
func background(t *testing.T, args ...string) (stop func() string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan string, 1)
	go func() { // ends with ctx
		_, stdout, stderr := command(ctx, t, args...)
		ended <- stdout + stderr
	}()
	return func() string {
		cancel()
		out := <-ended
		ended <- out
		return out
	}
}

// One process performs an action for all spaces; the result of one action chooses the queue of the next.
func TestPerform_ActionsOfAllSpacesInQueuesWithProgress(t *testing.T) {
	t.Parallel()
	hosting(t)
	dir := t.TempDir()
	want(t, 0, "deployed", "deploy", filepath.Join("..", "..", "examples", "performers", "video.star"), "--space", "*")
	probes := background(t, "perform", "probe", "--", "sh", "-c", `cat >/dev/null; echo '"host-a"'`)
	defer probes()
	wrong := background(t, "perform", "transcode", "--queue", "host-b", "--", "sh", "-c", `echo '"wrong"'`)
	defer wrong()
	right := background(t, "perform", "transcode", "--queue", "host-a", "--slots", "2", "--", "sh", "-c", `
		test "$SETTLE_ATTEMPT" = 1 && echo "Offline: no route" >&2 && exit 1
		echo '{"frame":7}' >&3
		while ! test -e "`+dir+`/go"; do sleep 0.02; done
		test -n "$SETTLE_EVENT" || exit 1
		echo "\"$SETTLE_IDEMPOTENCY_KEY $SETTLE_ACTION $SETTLE_SPACE $SETTLE_RUN $SETTLE_KEY\""`)
	defer right()
	eventually(t, "v1: started", "workflow", "start", "one", "video", `{"file":"f"}`, "--id", "v1")
	eventually(t, "v2: started", "workflow", "start", "two", "video", `{"file":"f"}`, "--id", "v2")
	eventually(t, `progress of transcode, call 1/0: {"frame":7}`, "workflow", "status", "one", "v1")
	want(t, 0, `"progress":[{"action":"transcode","call":"1/0","attempt":2,"value":{"frame":7}}]`, "workflow", "status", "one", "v1", "--json")
	file(t, dir, "go", "")
	want(t, 0, `"settle.one.transcode.-key-`, "workflow", "result", "one", "v1")
	want(t, 0, ` transcode one v1 one/v1/`, "workflow", "result", "one", "v1")
	want(t, 0, `"settle.two.transcode.-key-`, "workflow", "result", "two", "v2")
	want(t, 0, ` transcode two v2 two/v2/`, "workflow", "result", "two", "v2")
	if out := right(); !strings.Contains(out, "transcode one one/v1/") || !strings.Contains(out, "Offline: no route") || !strings.Contains(out, ": done") {
		t.Error(out)
	}
	if out := wrong(); out != "performing tasks of action transcode of queue host-b, up to 4 at a time; Ctrl-C ends\n" {
		t.Errorf("the performers of another queue have printed %s", out)
	}
	want(t, 2, "--slots must be at least 1", "perform", "probe", "--slots", "0", "--", "true")
	want(t, 2, "action", "perform", "a b", "--", "true")
}

// A performer that is started before its server waits for it, prints that once, and then performs tasks.
func TestPerform_WaitsForAServer(t *testing.T) {
	t.Parallel()
	address := freePort(t)
	out, in := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() { // ends with ctx
		ended <- run(ctx, []string{"perform", "probe", "--nats", "nats://" + address, "--", "true"}, io.Discard, in)
		_ = in.Close()
	}()
	lines := bufio.NewScanner(out)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "waiting for a server: ") {
		t.Fatalf("%q", lines.Text())
	}
	server, err := embedded.Start(t.Context(), embedded.Config{StoreDir: t.TempDir(), Fsync: embedded.FsyncInterval, Listen: address})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Shutdown()
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "performing tasks of action probe") {
		t.Errorf("%q", lines.Text())
	}
	cancel()
	for lines.Scan() { // what it prints at its end
		t.Log(lines.Text())
	}
	<-ended
}
