package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/runs"
	"github.com/settlehq/settle/workflow"
)

// performCommand is a command that performs one task.
type performCommand struct {
	argv    []string
	env     []string
	in      model.Value
	timeout time.Duration // 0 for none
	// progress, if not nil, receives what the command reports about itself, on another goroutine.
	progress func(model.Value)
}

// run runs the command, and returns its result or its error.
func (c *performCommand) run(ctx context.Context) (out model.Value, failed *runs.ActionError) {
	if c.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	x := exec.CommandContext(ctx, c.argv[0], c.argv[1:]...)
	x.WaitDelay = time.Second
	x.Stdin = strings.NewReader(c.in.String())
	x.Env = append(os.Environ(), c.env...)
	stdout, stderr := &bounded{limit: maxOutput}, &tail{}
	x.Stdout, x.Stderr = stdout, stderr
	end, err := c.follow(x)
	if err == nil {
		err = x.Start()
		if end != nil {
			defer end()
		}
	}
	if err == nil {
		err = x.Wait()
	}
	switch {
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return out, &runs.ActionError{Type: workflow.TimeoutError, Message: fmt.Sprintf("the command took longer than %v", c.timeout)}
	case err != nil:
		return out, errorOf(stderr.String(), err)
	case stdout.over:
		return out, &runs.ActionError{Type: workflow.LimitError, Message: fmt.Sprintf("the command has written more than %d bytes", maxOutput)}
	case len(bytes.TrimSpace(stdout.Bytes())) == 0:
		return model.Null(), nil
	}
	if out, err = model.ParseValue(bytes.TrimSpace(stdout.Bytes())); err != nil {
		return out, &runs.ActionError{Type: "Error", Message: fmt.Sprintf("the output of the command is not JSON: %v", err)}
	}
	return out, nil
}

// follow gives the command a descriptor 3, on which it writes its progress: JSON, one value per line. end closes it once the command has
// started and ended.
func (c *performCommand) follow(x *exec.Cmd) (end func(), err error) {
	if c.progress == nil {
		return nil, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	x.ExtraFiles = []*os.File{w}
	read := make(chan struct{})
	go func() { // ends when all copies of w are closed, or with end
		defer close(read)
		for lines := bufio.NewScanner(r); lines.Scan(); {
			if v, err := model.ParseValue(lines.Bytes()); err == nil {
				c.progress(v)
			}
		}
		_, _ = io.Copy(io.Discard, r) // so that the command can go on after a line that is too long
	}()
	return func() {
		_ = w.Close()
		_ = r.Close()
		<-read
	}, nil
}

// maxOutput is more than the result of an action may have.
const maxOutput = 512 << 10

// bounded keeps the beginning of what a command writes.
type bounded struct {
	bytes.Buffer

	limit int
	over  bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if room := b.limit - b.Len(); len(p) > room {
		b.over = true
		_, _ = b.Buffer.Write(p[:room]) // never fails
		return len(p), nil
	}
	return b.Buffer.Write(p)
}

// tail keeps the end of what a command writes.
type tail struct{ kept []byte }

// maxTail is longer than any line that is shown.
const maxTail = 8 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if len(t.kept) > 2*maxTail {
		t.kept = append([]byte(nil), t.kept[len(t.kept)-maxTail:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return string(t.kept) }

// errorOf returns the error of a command: the last line of stderr, with a type if it begins with one.
func errorOf(stderr string, err error) *runs.ActionError {
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	last := cmp.Or(strings.TrimSpace(lines[len(lines)-1]), err.Error())
	typ, message, is := strings.Cut(last, ": ")
	if is && model.CheckName("type", typ) == nil {
		return &runs.ActionError{Type: typ, Message: message}
	}
	return &runs.ActionError{Type: "Error", Message: last}
}
