package natstest

import (
	"testing"

	"github.com/settlehq/settle/bus/embedded"
)

// StartServer starts an embedded server, and shuts it down when the test ends. A server without a directory
// gets a temporary one, and does not sync to disk.
func StartServer(t testing.TB, cfg embedded.Config) *embedded.Server {
	t.Helper()
	if cfg.StoreDir == "" {
		cfg.StoreDir, cfg.Fsync = t.TempDir(), embedded.FsyncInterval
	}
	s, err := embedded.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	return s
}
