package dev

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/settlehq/settle/program"
)

// quiet is how long nothing must change before the files are read: an editor saves in several
// steps.
const quiet = 30 * time.Millisecond

// watch reloads programs when files change, and reports decisions of other clients, until ctx ends.
// It watches directories, because editors replace a file when they save it.
func (d *dev) watch(ctx context.Context, w *fsnotify.Watcher, rules <-chan program.Rule) error {
	calm := time.NewTimer(quiet)
	defer calm.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, ok := <-w.Events:
			if !ok {
				return nil
			}
			if strings.HasSuffix(e.Name, program.Extension) && !e.Has(fsnotify.Chmod) {
				calm.Reset(quiet)
			}
		case r := <-rules:
			d.learn(r)
		case err := <-w.Errors:
			fmt.Fprintf(d.cfg.Out, "%s  watching the files failed (%v): restart if a saved file is not deployed\n", now(), err)
			calm.Reset(quiet)
		case <-calm.C:
			d.reload(ctx)
			d.reportNew()
			if err := d.lookAt(w); err != nil {
				fmt.Fprintf(d.cfg.Out, "%s  %v\n", now(), err)
			}
		}
	}
}

// lookAt watches the directories of all files of all programs.
func (d *dev) lookAt(w *fsnotify.Watcher) error {
	for _, h := range d.programs {
		if h.file == "" {
			continue
		}
		dir := filepath.Dir(h.file)
		dirs := []string{dir}
		for name := range h.version.Files { // any order: it is a set
			dirs = append(dirs, filepath.Dir(filepath.Join(dir, name)))
		}
		for _, dir := range dirs {
			if slices.Contains(w.WatchList(), dir) {
				continue
			}
			if err := w.Add(dir); err != nil {
				return fmt.Errorf("watch %s: %w", dir, err)
			}
		}
	}
	return nil
}
