package dev

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/settlehq/settle/internal/devserver"
	"github.com/settlehq/settle/internal/shape"
)

// describePatience is how long a program may take to describe itself.
const describePatience = time.Minute

// Describe builds the program in Go of a directory, and returns what it has in a space.
func Describe(ctx context.Context, dir, space string) (_ *shape.Program, err error) {
	if !isMain(dir) {
		return nil, fmt.Errorf("%s has no program in Go, which is a package main", dir)
	}
	scratch, err := os.MkdirTemp("", "settle-describe")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	s, err := newSource(dir, scratch)
	if err != nil {
		return nil, err
	}
	if _, err := s.build(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, describePatience)
	defer cancel()
	file := filepath.Join(scratch, "described.json")
	cmd := exec.CommandContext(ctx, s.exe)
	cmd.Dir, cmd.WaitDelay = scratch, time.Second
	cmd.Env = append(os.Environ(), devserver.DescribingOnly(file, space)...)
	said, err := cmd.CombinedOutput()
	text, unwritten := os.ReadFile(file)
	switch {
	case unwritten == nil:
		p := &shape.Program{}
		return p, json.Unmarshal(text, p)
	case ctx.Err() != nil || err == nil:
		return nil, fmt.Errorf("the program in %s has not described itself: its main function has to call settle.Main or spaceworker.Main", dir)
	}
	return nil, fmt.Errorf("the program in %s: %w: %s", dir, err, strings.TrimSpace(string(said)))
}
