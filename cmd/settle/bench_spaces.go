package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/internal/bench"
)

// benchSpacesCmd is `settle bench spaces`.
type benchSpacesCmd struct {
	Spaces     int           `default:"100000" help:"Total number of spaces."`
	Active     int           `default:"1000" help:"Spaces that are active at a time."`
	Single     int           `default:"1000" help:"Events of the latency measurement, one at a time."`
	Partitions int           `default:"4" help:"Partitions of the deployment."`
	Idle       time.Duration `default:"5s" help:"How long a space is at rest before it is unloaded from memory."`
	Fsync      string        `default:"interval" enum:"always,interval" help:"When the server syncs an acknowledged write to disk: always before it answers, or every interval (2 minutes)."`
	Store      string        `help:"Directory for the server's files. Default: a temporary one." placeholder:"DIR"`
	JSON       string        `name:"json" help:"Write the figures as JSON to FILE; - is standard output." placeholder:"FILE"`
}

// Run measures. The server runs in a separate process, so that its memory is not counted as
// the worker's.
func (c *benchSpacesCmd) Run(ctx context.Context, io streams) error {
	if c.Spaces < 1 || c.Active < 1 || c.Single < 1 || c.Partitions < 1 || c.Idle <= 0 {
		return usage(fmt.Errorf("bench spaces needs at least one space, one that is active, one event and one partition, and a time after which spaces leave"))
	}
	dir, err := os.MkdirTemp(c.Store, "settle-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // best effort: it is a temporary directory
	s, err := startServerProcess(ctx, dir, c.Fsync)
	if err != nil {
		return err
	}
	defer s.stop()
	r, err := bench.RunSpaces(ctx, bench.SpacesConfig{
		URL: s.url, Server: s.state, Fsync: c.Fsync, Spaces: c.Spaces, Active: c.Active, Single: c.Single,
		Partitions: c.Partitions, Idle: c.Idle,
		Phase: func(what string) { fmt.Fprintf(io.err, "%s ...\n", what) },
	})
	if err != nil {
		return err
	}
	if c.JSON != "-" {
		r.Print(io.out)
	}
	return writeJSON(io, c.JSON, r)
}

// writeJSON writes figures to a file, to standard output for "-", or nowhere for "".
func writeJSON(io streams, name string, v any) error {
	if name == "" {
		return nil
	}
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	data = append(data, '\n')
	if name == "-" {
		_, err = io.out.Write(data)
		return err
	}
	return os.WriteFile(name, data, 0o644)
}

// benchServerCmd is the server of `settle bench spaces`: it prints its address and, for each
// line of input, its resource usage, until the input ends.
type benchServerCmd struct {
	Dir   string `arg:"" help:"Directory for the server's files."`
	Fsync string `default:"interval" enum:"always,interval" help:"As of bench spaces."`
}

// Run serves until standard input ends.
func (c *benchServerCmd) Run(_ context.Context, io streams) error {
	mode := embedded.FsyncInterval
	if c.Fsync == "always" {
		mode = embedded.FsyncAlways
	}
	server, err := embedded.Start(context.Background(), embedded.Config{StoreDir: c.Dir, Fsync: mode, Listen: "127.0.0.1:0"})
	if err != nil {
		return err
	}
	defer server.Shutdown()
	fmt.Fprintln(io.out, server.ClientURL())
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if err := json.NewEncoder(io.out).Encode(bench.LocalState(server)); err != nil {
			return err
		}
	}
	return nil
}

// serverProcess is a benchServerCmd that runs.
type serverProcess struct {
	url     string
	cmd     *exec.Cmd
	ask     io.WriteCloser
	answers *bufio.Scanner
}

func startServerProcess(ctx context.Context, dir, fsync string) (*serverProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &serverProcess{cmd: exec.CommandContext(ctx, self, "bench", "server", dir, "--fsync", fsync)}
	s.cmd.Stderr = os.Stderr
	if s.ask, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	s.answers = bufio.NewScanner(out)
	if !s.answers.Scan() {
		s.stop()
		return nil, errors.New("the server's process ended without output")
	}
	s.url = s.answers.Text()
	return s, nil
}

// state returns the resource usage of the server.
func (s *serverProcess) state(context.Context) (st bench.ServerState, err error) {
	if _, err := fmt.Fprintln(s.ask); err != nil {
		return st, err
	}
	if !s.answers.Scan() {
		return st, errors.New("the server's process has ended")
	}
	return st, json.Unmarshal(s.answers.Bytes(), &st)
}

func (s *serverProcess) stop() {
	_ = s.ask.Close() // it ends with its input
	_ = s.cmd.Wait()  // its result does not matter any more
}
