package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/settlehq/settle/access"
	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/internal/devserver"
	"github.com/settlehq/settle/program"
)

// golang is a program in Go: it is built, and runs in a process of its own, which is replaced after a change.
type golang struct {
	*goSource
	nats         string
	out          io.Writer
	restartAfter time.Duration
	proxy        *proxy
	// running is nil while no process runs.
	running *process
	failed  string // the last error of the compiler, to report it once
	// kills are requests to kill the process.
	kills chan struct{}
}

// goDirectory returns the directory of a program in Go that is named, "" if none is.
func goDirectory(named []string) string {
	if len(named) == 0 {
		named = []string{"."}
	}
	if len(named) == 1 && isMain(named[0]) {
		return named[0]
	}
	return ""
}

// findGo has the program in Go of a directory run.
func (d *dev) findGo(dir string) error {
	if d.cfg.Trace {
		return errors.New("--trace shows the traces of programs in Starlark, which run in this process: leave it out for a program in Go, which exports its own")
	}
	s, err := newSource(dir, d.store())
	if err != nil {
		return err
	}
	d.golang = &golang{goSource: s, out: d.cfg.Out, restartAfter: d.cfg.RestartAfter, proxy: newProxy(), kills: make(chan struct{})}
	return nil
}

// web is the server for HTTP in front of a program in Go.
type web struct {
	cancel  context.CancelFunc
	serving sync.WaitGroup
	rules   *access.Book // of the deployment
}

// serveGo serves pages and a program in Go at an address, until stop.
func (d *dev) serveGo(ctx context.Context, address string) error {
	if d.golang == nil {
		return nil
	}
	d.golang.nats = d.server.NATS
	cfg := d.deployment("", address).HTTP
	cfg.API, cfg.Logger = d.golang.proxy, d.log
	rules, err := access.Open(ctx, d.bus, d.log)
	if err != nil {
		return err
	}
	cfg.Access = rules
	g, err := gateway.Listen(cfg)
	if err != nil {
		rules.Close()
		return err
	}
	d.web.rules = rules
	within, cancel := context.WithCancel(context.Background())
	d.web.cancel = cancel
	d.web.serving.Go(func() { g.Serve(within, nil, nil, nil) }) // ends with within
	return nil
}

// stop ends the server, if there is one.
func (w *web) stop() {
	if w.cancel != nil {
		w.cancel()
		w.serving.Wait()
		w.rules.Close()
	}
}

func (g *golang) title() string { return filepath.Base(g.dir) }

func (g *golang) print(format string, args ...any) {
	fmt.Fprintf(g.out, "%s  %s: %s\n", now(), g.title(), fmt.Sprintf(format, args...))
}

// begin builds the program and runs it.
func (g *golang) begin(ctx context.Context) {
	if !g.isBuilt() {
		g.print("building; the first time takes a minute")
	}
	if _, err := g.build(ctx); err != nil && ctx.Err() == nil {
		g.reportBuild(err)
	} else if err == nil {
		g.start(ctx)
	}
}

// update builds the program, and replaces the process if it has changed.
func (g *golang) update(ctx context.Context) {
	began := time.Now()
	changed, err := g.build(ctx)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		g.reportBuild(err)
		return
	case !changed && g.running != nil:
		if g.failed != "" {
			g.print("the same as what runs")
		}
		g.failed = ""
		return
	}
	g.failed = ""
	built, runs := time.Since(began), "runs again"
	if g.running == nil {
		runs = "runs"
	}
	g.stop()
	if g.start(ctx) {
		g.print("built in %.1fs, and %s; documents and timers stay", built.Seconds(), runs)
	}
}

// reportBuild reports mistakes in the program, once.
func (g *golang) reportBuild(err error) {
	if err.Error() == g.failed {
		return
	}
	g.failed = err.Error()
	on := "the previous version keeps running"
	if g.running == nil {
		on = "nothing runs until it does"
	}
	g.print("it does not build; %s\n  %s", on, strings.ReplaceAll(g.failed, "\n", "\n  "))
}

// start starts the process, and reports whether it serves.
func (g *golang) start(ctx context.Context) bool {
	p, err := execute(g.exe, g.nats, g.space(), g.out)
	if err != nil {
		g.print("it could not be started: %v", err)
		return false
	}
	g.running = p
	if err = p.serves(ctx, servesWithin); ctx.Err() != nil {
		return false
	}
	g.proxy.to.Store(p.url)
	if errors.Is(err, errSilent) {
		g.print("%v", err)
		return false
	}
	if err != nil { // starting it again would change nothing
		g.forget()
		g.print("%v; save a file to start it again", err)
		return false
	}
	return true
}

// stop ends the process, if one runs.
func (g *golang) stop() {
	if g.running != nil {
		g.proxy.to.Store(nil)
		g.running.stop()
		g.forget()
	}
}

// forget forgets a process that has ended.
func (g *golang) forget() {
	g.proxy.to.Store(nil)
	g.running = nil
}

// ended returns a channel that is closed when the process has ended, nil if none runs.
func (g *golang) ended() <-chan struct{} {
	if g.running == nil {
		return nil
	}
	return g.running.ended
}

// watch builds and runs the program again when files change, and starts it again after it has ended, until ctx ends.
func (g *golang) watch(ctx context.Context, w *fsnotify.Watcher, rules <-chan program.Rule, learn func(program.Rule)) error {
	calm, again := time.NewTimer(quiet), time.NewTimer(0)
	defer calm.Stop()
	defer again.Stop()
	again.Stop()
	defer g.stop()
	for {
		if err := g.lookAt(w); err != nil {
			g.print("%v", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case e, ok := <-w.Events:
			if !ok {
				return nil
			}
			if g.uses(e.Name) && !e.Has(fsnotify.Chmod) {
				calm.Reset(quiet)
			}
		case r := <-rules:
			learn(r)
		case err := <-w.Errors:
			g.print("watching the files failed (%v): restart if a saved file is not built", err)
			calm.Reset(quiet)
		case <-calm.C:
			g.update(ctx)
		case <-g.kills:
			if g.running != nil {
				g.running.kill()
			}
		case <-g.ended():
			g.print("%v; it is started again in %v", g.running.why(), g.restartAfter)
			g.forget()
			again.Reset(g.restartAfter)
		case <-again.C:
			if g.running == nil && g.start(ctx) {
				g.print("it is back")
			}
		}
	}
}

// lookAt watches the directories that the program is built from.
func (g *golang) lookAt(w *fsnotify.Watcher) error {
	watched := w.WatchList()
	for _, dir := range g.dirs {
		if !slices.Contains(watched, dir) {
			if err := w.Add(dir); err != nil && !errors.Is(err, os.ErrNotExist) { // it may come back
				return fmt.Errorf("watch %s: %w", dir, err)
			}
		}
	}
	return nil
}

// kill has the process killed, which is the worker of that id.
func (g *golang) kill(ctx context.Context, id string) (*Killed, error) {
	if id != devserver.ChildID {
		return nil, fmt.Errorf("there is no worker %q; there is %s", id, devserver.ChildID)
	}
	select {
	case g.kills <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return &Killed{Worker: id, Back: g.restartAfter.Milliseconds()}, nil
}
