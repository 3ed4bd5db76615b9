package devserver

import (
	"bufio"
	"context"
	"io"
	"os"
	"strings"
)

// Child is what `settle dev` and a program in Go agree on that it runs as a process of its own: the program connects to NATS, and serves HTTP at an
// address, as a worker of that dev server. It stops in good order when it reads StopLine from its standard input. When that ends without, `settle dev` was
// killed, and the process ends as if it were killed with it: another `settle dev` may start a process with the same id at once.
type Child struct {
	NATS, HTTP string
}

// devEnv is set in the environment of the process.
const devEnv = "SETTLE_DEV"

// ChildID is the id of the worker.
const ChildID = "w1"

// ChildOf returns what `settle dev` wants of a process with this environment, false if it does not run it.
func ChildOf(getenv func(string) string) (c Child, is bool) {
	return Child{NATS: getenv("NATS_URL"), HTTP: getenv("SETTLE_HTTP")}, getenv(devEnv) != ""
}

// Environment returns the environment of the process, given that of `settle dev`. Those are the variables that flags of a worker have as well.
func (c Child) Environment(own []string) (env []string) {
	for _, variable := range own {
		if !strings.HasPrefix(variable, "NATS_") { // they may lead to another server
			env = append(env, variable)
		}
	}
	return append(env, devEnv+"=1", "NATS_URL="+c.NATS, "SETTLE_HTTP="+c.HTTP, "SETTLE_ID="+ChildID)
}

// Environment of a process that is to describe its program.
const (
	describeEnv = "SETTLE_DESCRIBE"
	spaceEnv    = "SETTLE_DESCRIBE_SPACE"
)

// Describing returns the variables that have a process write the description of its program into a file: that of a space, if it has several.
func Describing(file, space string) []string {
	return []string{describeEnv + "=" + file, spaceEnv + "=" + space}
}

// DescribingOnly is Describing for a process that does nothing else, whatever the environment of this one says.
func DescribingOnly(file, space string) []string { return append(Describing(file, space), devEnv+"=") }

// Describe writes the description of the program of a space into a file, if the environment of this process asks for it, and reports whether that is
// all. Where the program runs as well, an error is none: the description is for suggestions.
func Describe(getenv func(string) string, of func(space string) ([]byte, error)) (only bool, err error) {
	file := getenv(describeEnv)
	if file == "" {
		return false, nil
	}
	text, err := of(getenv(spaceEnv))
	if err == nil {
		err = os.WriteFile(file, text, 0o644)
	}
	if _, runs := ChildOf(getenv); runs {
		return false, nil
	}
	return true, err
}

// StopLine asks a process to stop.
const StopLine = "stop\n"

// Context returns a context that ends when the process is asked to stop. If the standard input ends without, it calls orphaned.
func (c Child) Context(ctx context.Context, stdin io.Reader, orphaned func()) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() { // ends with the input, at the latest with `settle dev`
		if line, _ := bufio.NewReader(stdin).ReadString('\n'); line != StopLine {
			orphaned()
		}
		cancel()
	}()
	return ctx
}

// End ends this process at once.
func End() { os.Exit(1) }
