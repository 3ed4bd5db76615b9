// Command bench measures Settle beside other ways to do the same work, on the same servers, in turns. README.md
// describes it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/settlehq/settle/bench/events"
	"github.com/settlehq/settle/bench/harness"
)

func main() {
	if text := os.Getenv(harness.RoleEnv); text != "" {
		exit(role(text))
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	exit(command(ctx, os.Args[1:]))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// role plays a worker, in a process that the benchmark has started.
func role(text string) error {
	var r harness.Role
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return err
	}
	return events.Serve(r)
}

// The files of the benchmark, relative to its module.
const (
	recordFile = "results.json"
	countsFile = "counts.json"
)

func command(ctx context.Context, args []string) error {
	stop, err := harness.Profile() // of the clients, which are in this process
	if err != nil {
		return err
	}
	defer stop()
	switch {
	case len(args) > 0 && args[0] == "small":
		return small(ctx, args[1:], os.Stdout)
	case len(args) > 0 && args[0] == "observed":
		return observed(ctx, args[1:], os.Stdout)
	case len(args) > 0 && args[0] == "page":
		return writePage(recordFile, page)
	}
	return all(ctx, args)
}

// natsServer builds the server, in the version that the module is required in, and returns its path.
func natsServer(ctx context.Context, log io.Writer) (string, error) {
	path, err := filepath.Abs(filepath.Join("bin", "nats-server"))
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "github.com/nats-io/nats-server/v2")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		return "", errors.Join(errors.New("nats-server cannot be built"), err)
	}
	return path, nil
}
