package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Others are servers that other engines need, in processes of their own. One that cannot be had is reported as the
// reason why its engines are not run.
type Others struct {
	// Postgres and Temporal are addresses.
	Postgres, Temporal string
	// NoPostgres and NoTemporal are the reasons why there is no address.
	NoPostgres, NoTemporal error

	postgres, temporal *exec.Cmd
}

// StartOthers starts what can be had.
func StartOthers(ctx context.Context, dir string, log io.Writer) *Others {
	o := &Others{}
	if o.NoPostgres = o.startPostgres(ctx, filepath.Join(dir, "postgres")); o.NoPostgres != nil {
		fmt.Fprintln(log, "PostgreSQL:", o.NoPostgres)
	}
	if o.NoTemporal = o.startTemporal(ctx, dir); o.NoTemporal != nil {
		fmt.Fprintln(log, "Temporal:", o.NoTemporal)
	}
	return o
}

// PostgresPIDs and TemporalPIDs are the processes, for a Meter.
func (o *Others) PostgresPIDs() []int { return pids(o.postgres) }
func (o *Others) TemporalPIDs() []int { return pids(o.temporal) }

func pids(cmd *exec.Cmd) []int {
	if cmd == nil {
		return nil
	}
	return []int{cmd.Process.Pid}
}

// Stop ends the servers.
func (o *Others) Stop() {
	for _, cmd := range []*exec.Cmd{o.postgres, o.temporal} {
		if cmd != nil {
			_ = cmd.Process.Signal(os.Interrupt) // it may have ended
			_ = cmd.Wait()
		}
	}
}

// postgresProgram finds a program of PostgreSQL, which Debian does not put into the path.
func postgresProgram(name string) (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(found) > 0 {
		return found[len(found)-1], nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("there is no %s; apt-get install postgresql", name)
	}
	return path, nil
}

// startPostgres starts a server with the defaults of PostgreSQL, so that each commit is on the disk, and more
// connections. It does not run as root, so its files belong to the user postgres then.
func (o *Others) startPostgres(ctx context.Context, dir string) error {
	initdb, err := postgresProgram("initdb")
	if err != nil {
		return err
	}
	server, err := postgresProgram("postgres")
	if err != nil {
		return err
	}
	as := &syscall.SysProcAttr{}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if os.Getuid() == 0 {
		u, err := user.Lookup("postgres")
		if err != nil {
			return err
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		as.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := errors.Join(os.Chown(dir, uid, gid), os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
			return err
		}
	}
	data := filepath.Join(dir, "data")
	init := exec.CommandContext(ctx, initdb, "-D", data, "-U", "bench", "-A", "trust", "-E", "UTF8", "--locale", "C")
	init.SysProcAttr, init.Dir = as, dir
	if text, err := init.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %.300s", err, text)
	}
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	log, err := os.Create(dir + ".log")
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the process has its own descriptor
	o.postgres = exec.Command(server, "-D", data, "-p", strconv.Itoa(ports[0]), "-k", dir, "-c", "listen_addresses=127.0.0.1", "-c", "max_connections=300", "-c", "shared_buffers=512MB")
	o.postgres.SysProcAttr, o.postgres.Dir, o.postgres.Stdout, o.postgres.Stderr = as, dir, log, log
	if err := o.postgres.Start(); err != nil {
		o.postgres = nil
		return err
	}
	psql, err := exec.LookPath("psql")
	if err != nil {
		return err
	}
	address := fmt.Sprintf("postgres://bench@127.0.0.1:%d/", ports[0])
	for range 100 {
		if err = exec.CommandContext(ctx, psql, address+"postgres", "-qc", "CREATE DATABASE dbos", "-c", "CREATE DATABASE river", "-c", "CREATE DATABASE flows").Run(); err == nil {
			o.Postgres = address
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("PostgreSQL does not answer: %w", err)
}

// temporalProgram finds the command temporal, in bin, from this module or one of its packages, or in the path.
func temporalProgram() (string, error) {
	for _, bin := range []string{"bin", filepath.Join("..", "bin")} {
		if path, err := filepath.Abs(filepath.Join(bin, "temporal")); err == nil {
			if _, err := os.Stat(path); err == nil {
				return path, nil
			}
		}
	}
	path, err := exec.LookPath("temporal")
	if err != nil {
		return "", errors.New("there is no command temporal; GOBIN=$PWD/bin go install github.com/temporalio/cli/cmd/temporal@v1.5.1 builds it, in bench")
	}
	return path, nil
}

// startTemporal starts the development server. It keeps its database in a file.
func (o *Others) startTemporal(ctx context.Context, dir string) error {
	program, err := temporalProgram()
	if err != nil {
		return err
	}
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(dir, "temporal.log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the process has its own descriptor
	o.temporal = exec.Command(program, "server", "start-dev", "--headless", "--port", strconv.Itoa(ports[0]), "--db-filename", filepath.Join(dir, "temporal.db"), "--log-level", "error",
		"--sqlite-pragma", "journal_mode=WAL", "--sqlite-pragma", "synchronous=FULL") // a commit is on the disk, in one fsync
	o.temporal.Stdout, o.temporal.Stderr = log, log
	if err := o.temporal.Start(); err != nil {
		o.temporal = nil
		return err
	}
	address := "127.0.0.1:" + strconv.Itoa(ports[0])
	for range 600 {
		text, failed := exec.CommandContext(ctx, program, "operator", "cluster", "health", "--address", address).CombinedOutput()
		if failed == nil && strings.Contains(string(text), "SERVING") {
			o.Temporal = address
			return nil
		}
		err = fmt.Errorf("the development server does not answer: %.200s", text)
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

var errNotStarted = errors.New("its server was not started")

// WhyNotPostgres returns why there is no PostgreSQL.
func (o *Others) WhyNotPostgres() error {
	if o == nil {
		return errNotStarted
	}
	return o.NoPostgres
}

// WhyNotTemporal returns why there is no Temporal.
func (o *Others) WhyNotTemporal() error {
	if o == nil {
		return errNotStarted
	}
	return o.NoTemporal
}

// Silent is a logger of Temporal's SDK that discards all.
type Silent struct{}

func (Silent) Debug(string, ...any) {}
func (Silent) Info(string, ...any)  {}
func (Silent) Warn(string, ...any)  {}
func (Silent) Error(string, ...any) {}
