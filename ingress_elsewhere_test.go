package settle_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/worker"
)

// A worker takes events over HTTP for spaces whose program it does not have, if their owner has it: also for spaces that do not exist, and without a
// document. What no owner has a program for is not stored.
func TestIngress_TheOwnerOfASpaceHasItsProgram(t *testing.T) {
	ports, err := natstest.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	one := bus.Config{Partitions: 1}
	d, err := settle.Start(t.Context(), settle.Config{Server: embedded.Config{StoreDir: t.TempDir()}, Bus: one, Programs: func(space string) *settle.Program {
		if strings.HasPrefix(space, "nothing") {
			return nil
		}
		return counter()
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Stop(context.WithoutCancel(t.Context())) })
	one.Server = d.Server()
	b, err := bus.Connect(t.Context(), one)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	addr := fmt.Sprint("127.0.0.1:", ports[0])
	door, err := settle.StartWorker(t.Context(), b, settle.WorkerConfig{
		ID: "door", Programs: func(string) *settle.Program { return nil }, HTTP: gateway.Config{Addr: addr}, Options: worker.Options{Weight: 1e-9},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = door.Stop(context.WithoutCancel(t.Context())) })
	for space, want := range map[string]string{"new-1": `"outcome":"handled"`, "nothing-1": "no-program"} { // any order: each on its own
		for range 2 {
			r, err := http.Post("http://"+addr+"/v1/spaces/"+space+"/streams/add?wait=receipt", "application/json", nil)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(r.Body)
			_ = r.Body.Close()
			if !strings.Contains(string(body), want) {
				t.Errorf("%s: %s", space, body)
			}
		}
	}
}
