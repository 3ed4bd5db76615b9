package browser

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/console"
	"github.com/settlehq/settle/flow"
	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program"
)

// world is a deployment with a console.
type world struct {
	*testing.T
	server *embedded.Server
	d      *settle.Deployment
	web    gateway.Config
	base   string        // the address of the console
	undo   time.Duration // how long jobs wait, 0 for the default
	end    func()        // ends the console
}

// start starts a deployment that runs testdata/shop.star in all spaces but wide*, which run testdata/wide.star.
func start(t *testing.T, workers int, web gateway.Config) *world {
	t.Helper()
	cfg := settle.Config{Hosted: true, Workers: -1}
	cfg.Options.Aside, cfg.Options.EventRetries = time.Second, 100_000
	w := startWith(t, cfg, web)
	w.deploy("shop", "*")
	w.deploy("wide", "wide*")
	for range workers {
		if _, err := w.d.AddWorker(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	w.serve()
	return w
}

// startWith starts a deployment, whose console is not served yet.
func startWith(t *testing.T, cfg settle.Config, web gateway.Config) *world {
	t.Helper()
	w := &world{T: t, server: natstest.StartServer(t, embedded.Config{Listen: ":0"}), web: web}
	w.web.Addr = "127.0.0.1:0"
	cfg.Bus.Partitions = 4
	if cfg.Bus.Faults == nil {
		cfg.Bus.Server = w.server
	} else { // faults are of connections
		cfg.Bus.URL = w.server.ClientURL()
	}
	var err error
	if w.d, err = settle.Start(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.d.Stop(context.Background()); err != nil {
			t.Log(err)
		}
	})
	t.Cleanup(func() {
		if w.end != nil {
			w.end()
		}
	})
	return w
}

// deploy deploys a program of testdata.
func (w *world) deploy(name, spaces string) {
	w.Helper()
	w.deployAs(filepath.Join("testdata", name+".star"), name, spaces)
}

// redeploy deploys a program of testdata in which a text is another one.
func (w *world) redeploy(name, spaces, text, other string) {
	w.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".star"))
	if err != nil {
		w.Fatal(err)
	}
	file := filepath.Join(w.TempDir(), name+".star")
	if err := os.WriteFile(file, []byte(strings.Replace(string(data), text, other, 1)), 0o600); err != nil {
		w.Fatal(err)
	}
	w.deployAs(file, name, spaces)
}

func (w *world) deployAs(file, name, spaces string) {
	w.Helper()
	source, err := program.Read(name, file)
	if err != nil {
		w.Fatal(err)
	}
	v, err := program.NewVersion(source, "test", "", time.Now())
	if err != nil {
		w.Fatal(err)
	}
	if _, _, err := program.Publish(w.Context(), w.d.Bus(), v); err != nil {
		w.Fatal(err)
	}
	_, err = program.Decide(w.Context(), w.d.Bus(), spaces, func(program.Rule) (program.Choice, error) {
		return program.Choice{Target: v.Target(), By: v.By, At: v.At}, nil
	})
	if err != nil {
		w.Fatal(err)
	}
}

// serve serves a console at the address of the one before, if there was one.
func (w *world) serve() {
	w.Helper()
	pages, err := console.OnBus(w.d.Bus(), console.Config{Version: "0.0.0", Undo: w.undo})
	if err != nil {
		w.Fatal(err)
	}
	web := w.web
	web.Pages = pages
	var g *gateway.Gateway
	for { // the address of a console that was killed may be in use for a moment
		if g, err = gateway.Listen(web); err == nil {
			break
		}
		if w.Context().Err() != nil {
			w.Fatal(err)
		}
	}
	w.web.Addr, w.base = g.Addr(), "http://"+g.Addr()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() { // ends with the console
		defer close(served)
		g.Serve(ctx, nil, nil, nil)
	}()
	w.end = sync.OnceFunc(func() {
		cancel()
		<-served
		pages.Close()
	})
}

// send sends an event, and waits until it is handled.
func (w *world) send(space, stream, id string, payload any) {
	w.Helper()
	e := settle.Outgoing{Space: space, Stream: stream, ID: settle.NewID(), Payload: payload}
	if id != "" {
		e.ID = settle.ID(id)
	}
	_, err := w.d.Client().Call(w.Context(), e)
	if _, failed := errors.AsType[*settle.NotHandledError](err); err != nil && (!failed || stream != "refuse") {
		if _, rejected := errors.AsType[*settle.Rejection](err); !rejected {
			w.Fatal(err)
		}
	}
}

// fill makes spaces with something of everything.
func (w *world) fill() {
	w.Helper()
	for i, space := range []string{"berlin", "oslo", "rome"} {
		for k, item := range []string{"lamp", "desk", "chair"} {
			w.send(space, "deliver", fmt.Sprint("d", k), map[string]any{"item": item, "pieces": 10*i + 7*k + 3})
		}
		w.send(space, "order", "o1", map[string]any{"item": "lamp", "pieces": 2, "gift": true, "note": "with a card"})
	}
	w.send("rome", "remind", "r1", map[string]any{"item": "lamp", "after": "2h"})
	w.send("rome", "refuse", "x1", nil)
	w.send("berlin", "ask", "a1", nil)
	if _, err := flow.In(w.d.Client().Space("berlin")).Start(w.Context(), "finish", "f1", map[string]any{"items": []string{"lamp", "desk"}}); err != nil {
		w.Fatal(err)
	}
	w.send("wide", "put", "p1", map[string]any{"at": "shelf-1-1", "n": 4})
	if _, err := w.d.Client().Send(w.Context(), settle.Outgoing{Space: "oslo", Stream: "wait", ID: settle.ID("w1")}); err != nil {
		w.Fatal(err)
	}
}

// owner returns the worker that serves a space.
func (w *world) owner(space string) string {
	w.Helper()
	f, err := fleet.Look(w.Context(), w.d.Bus())
	if err != nil {
		w.Fatal(err)
	}
	return f.Partitions[model.PartitionOf(space, len(f.Partitions))].Owner
}

// principals writes a file of principals, whose tokens are their names.
func principals(t *testing.T, entries ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "principals.json")
	for i, e := range entries {
		name, rest, _ := strings.Cut(e, " ")
		sum := sha256.Sum256([]byte(name))
		entries[i] = fmt.Sprintf(`{"name":%q,"tokens_sha256":[%q]%s}`, name, hex.EncodeToString(sum[:]), rest)
	}
	if err := os.WriteFile(file, []byte(`{"principals":[`+strings.Join(entries, ",")+`]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// follow reads the stream of a page, as a console that is open does, until ctx ends or a line is as wanted.
func (w *world) follow(ctx context.Context, path string, wanted func(line string) bool) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.base+path, http.NoBody)
	if err != nil {
		w.Error(err)
		return
	}
	r.Header.Set("Accept", "text/event-stream")
	client := http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	answer, err := client.Do(r)
	if err != nil {
		w.Error(err)
		return
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		if wanted(lines.Text()) {
			return
		}
	}
	w.Errorf("a stream has ended without the change: %v", lines.Err())
}

// alive reports whether a console answers.
func (w *world) alive() bool {
	answer, err := http.Get(w.base + "/-/help")
	if err != nil {
		return false
	}
	return answer.Body.Close() == nil
}
