package settle_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
)

// broken has two handlers for one stream.
func broken() *settle.Program {
	h := func(*settle.Tx, *settle.Event) (settle.Value, error) { return settle.Value{}, nil }
	return settle.NewProgram("broken").Handle("sign", h).Handle("sign", h)
}

// Its events would wait for a handler for ever.
func TestStart_RefusesAProgramThatIsBroken(t *testing.T) {
	_, err := settle.Start(t.Context(), settle.Config{
		Programs: settle.Always(broken()), Server: bus.ServerConfig{StoreDir: t.TempDir()},
	})
	if err == nil || !strings.Contains(err.Error(), "program broken: stream sign") {
		t.Errorf("got %v", err)
	}
	if _, err := settle.StartWorker(t.Context(), nil, settle.WorkerConfig{ID: "w1", Programs: settle.Always(broken())}); err == nil {
		t.Error("a worker of a broken program started")
	}
}

// Who gives no logger sees what goes wrong, and nothing else.
func TestStart_LogsWarningsToTheDefaultLogger(t *testing.T) {
	var out bytes.Buffer
	former := slog.Default()
	t.Cleanup(func() { slog.SetDefault(former) })
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	log := settle.DefaultLog().With("a", 1).WithGroup("g")
	log.Info("started")
	log.Warn("event failed", "b", 2)
	if got := out.String(); strings.Contains(got, "started") || !strings.Contains(got, `"event failed" a=1 g.b=2`) {
		t.Errorf("logged %s", got)
	}
}
