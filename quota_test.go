package settle_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/model"
)

// tenant starts a deployment in the account of a user.
func tenant(t *testing.T, url, user string) *settle.Client {
	t.Helper()
	d, err := settle.Start(t.Context(), settle.Config{
		Programs: settle.Always(notebook()), Logger: slog.New(slog.DiscardHandler), Bus: bus.Config{URL: url, User: user, Password: "secret", Partitions: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Stop(t.Context()) }) // that of the tenant without storage cannot save
	return d.Client()
}

// Tenants with accounts of their own have as much storage as their account: the events of one that has used it up are refused with an error
// that names the limit, and the other's are handled as before.
func TestQuota_ATenantThatHasUsedItsStorageIsToldAndDelaysNoOther(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := filepath.Join(dir, "nats.conf")
	const accounts = `
		listen: "127.0.0.1:-1"
		accounts {
			SMALL { jetstream { max_file: 4MB, max_mem: 0 }, users: [{user: small, password: secret}] }
			LARGE { jetstream { max_file: 1GB, max_mem: 0 }, users: [{user: large, password: secret}] }
		}`
	if err := os.WriteFile(config, []byte(accounts), 0o600); err != nil {
		t.Fatal(err)
	}
	server, err := embedded.Start(t.Context(), embedded.Config{StoreDir: filepath.Join(dir, "store"), ConfigFile: config, Fsync: embedded.FsyncInterval})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Shutdown)
	small, large := tenant(t, server.ClientURL(), "small"), tenant(t, server.ClientURL(), "large")
	page := strings.Repeat("x", 100_000)
	for n := 0; err == nil && n < 1000; n++ {
		_, err = small.Send(t.Context(), settle.Outgoing{Space: fmt.Sprintf("s%d", n), Stream: "write", ID: settle.ID("w"), Payload: page})
	}
	if !errors.Is(err, model.ErrLaneFull) || !strings.Contains(err.Error(), "resource limits exceeded for account") {
		t.Errorf("the tenant with 4 MB has sent 100 MB: %v", err)
	}
	for n := range 10 {
		got, err := settle.NewRequest[string, string]("write").Call(t.Context(), large.Space("mine"), settle.ID(fmt.Sprintf("w%d", n)), page)
		if err != nil || got != page {
			t.Fatalf("the other tenant: %v", err)
		}
	}
}
