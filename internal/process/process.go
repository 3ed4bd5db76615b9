// Package process holds what Settle's long-running programs have in common: connecting, logging,
// tracing and stopping.
package process

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/internal/devserver"
	"github.com/settlehq/settle/internal/optionflags"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// Version is the version of the program. The linker sets it in releases.
var Version = "dev"

// Flags are the flags of every long-running program.
type Flags struct {
	NATS       string        `name:"nats" bus:"URL" placeholder:"URL"`
	Context    string        `bus:"Context" placeholder:"NAME"`
	Creds      string        `bus:"Creds" type:"existingfile" placeholder:"FILE"`
	Prefix     string        `bus:"Prefix"`
	Partitions int           `help:"Partitions of the deployment, fixed when it is created: creates it if it does not exist. 0 waits for a deployment, and uses its number." bus:"Partitions"`
	Horizon    time.Duration `bus:"Horizon"`
	ID         string        `help:"Name of this process, unique among running ones. Default: the host's name and a random suffix." env:"SETTLE_ID"`
	AckTimeout time.Duration `bus:"AckTimeout"`
	Stop       time.Duration `name:"stop-timeout" help:"How long the program may take after SIGTERM to finish running work and to save." default:"20s" env:"SETTLE_STOP_TIMEOUT"`
	Metrics    string        `help:"Serve metrics for Prometheus (/metrics) and health checks (/livez, /readyz) at this address, such as 127.0.0.1:9464. Default: none." env:"SETTLE_METRICS" placeholder:"ADDR"`
	Pprof      bool          `help:"Serve profiles of the process (/debug/pprof/) at the address of the metrics, too." env:"SETTLE_PPROF"`
	Log        string        `help:"The lowest level that is logged." enum:"debug,info,warn,error" default:"info" env:"SETTLE_LOG"`
	LogFormat  string        `help:"How lines of the log are written: text is logfmt, json has one object a line." enum:"text,json" default:"text" env:"SETTLE_LOG_FORMAT"`

	ShowVersion kong.VersionFlag `name:"version" help:"Print the version and exit."`
}

// defaultStop is how long a program may take to stop whose flags were not parsed.
const defaultStop = 20 * time.Second

// Process is a program that has connected.
type Process struct {
	ID     string
	Bus    *bus.Bus
	Logger *slog.Logger
	Tracer trace.Tracer
	// Meter is nil if metrics are not wanted.
	Meter metric.Meter
}

// Main parses the command line into flags (a pointer to a struct that embeds Flags), runs the
// program until SIGTERM or SIGINT, and exits: 0 for a clean stop, 1 for a failure, 2 for a bad
// command line.
func Main(name, description string, flags any, f func(ctx context.Context) error, options ...kong.Option) {
	kong.Parse(flags, append(options, optionflags.OfBus(), kong.Name(name), kong.Description(description), kong.Vars{"version": Version},
		kong.Exit(func(code int) { os.Exit(min(code, 2)) }))...)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if child, is := devserver.ChildOf(os.Getenv); is {
		signal.Ignore(os.Interrupt) // it is for settle dev, which ends this process
		ctx = child.Context(ctx, os.Stdin, devserver.End)
	}
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	err := f(ctx)
	stop()
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, name+":", optionflags.Text(err))
		os.Exit(1)
	}
}

// Run connects, waits for the deployment (or creates it if Partitions is set), calls start, waits
// for ctx, and calls the function that start returned, which gets Stop to finish. Until ctx
// ends, it waits for servers that are not reachable and for a deployment that does not exist yet.
func (f Flags) Run(ctx context.Context, role string, log io.Writer, start func(Process) (stop func(context.Context) error, err error)) error {
	p := Process{ID: cmp.Or(f.ID, randomID())}
	if err := model.CheckName(role, p.ID); err != nil {
		return err
	}
	s, err := f.observe(ctx, role, &p, log)
	if err != nil {
		return err
	}
	return errors.Join(f.runObserved(ctx, role, p, s, start), s.close())
}

func (f Flags) runObserved(ctx context.Context, role string, p Process, s *signals, start func(Process) (func(context.Context) error, error)) error {
	var err error
	if p.Bus, err = f.connect(ctx, role, &p); err != nil {
		logUnstarted(ctx, p, role, err)
		return err
	}
	stop, err := start(p)
	if err != nil {
		logUnstarted(ctx, p, role, err)
	} else {
		s.ready(p.serves)
		p.Logger.Info("running", "role", role, "id", p.ID, "partitions", p.Bus.Partitions())
		<-ctx.Done()
		s.ready(func() error { return errors.New("stopping") })
		p.Logger.Info("stopping", "role", role, "id", p.ID)
		last, cancel := context.WithTimeout(context.Background(), cmp.Or(f.Stop, defaultStop))
		defer cancel()
		err = stop(last)
	}
	if errors.Is(err, port.ErrNoServer) {
		p.Bus.Kill() // no request will be answered any more
	}
	p.Bus.Close()
	return err
}

// serves returns why the process does not serve now, nil if it does.
func (p *Process) serves() error {
	if !p.Bus.Reachable() {
		return errors.New("no server is reachable")
	}
	return nil
}

// connect returns the connection, when there is a deployment.
func (f Flags) connect(ctx context.Context, role string, p *Process) (*bus.Bus, error) {
	cfg := f.bus()
	cfg.Name, cfg.Logger = role+"/"+p.ID, p.Logger
	b, err := bus.Connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := f.deployment(ctx, b); err != nil {
		b.Kill()
		return nil, err
	}
	return b, nil
}

// bus returns the configuration of the connection.
func (f Flags) bus() bus.Config {
	cfg := bus.Config{Version: Version, AwaitServer: true}
	optionflags.FillBus(&cfg, &f)
	return cfg
}

// logUnstarted logs that the program was stopped before it ran, and what it was waiting for.
func logUnstarted(ctx context.Context, p Process, role string, why error) {
	if ctx.Err() != nil {
		p.Logger.Info("stopped before it was running", "role", role, "id", p.ID, "error", why)
	}
}

// deployment waits for the deployment, unless Partitions is set to create one: a program that is
// started before `settle provision` must not choose their number. Missing parts of a deployment are
// created, or waited for if this user may not create them.
func (f Flags) deployment(ctx context.Context, b *bus.Bus) error {
	if f.Partitions == 0 {
		if err := b.AwaitDeployment(ctx); err != nil {
			return err
		}
	}
	if err := b.MayProvision(ctx); errors.Is(err, model.ErrForbidden) {
		return b.AwaitProvision(ctx)
	}
	return b.Complete(ctx)
}

// logTo returns what writes the log to w.
func (f Flags) logTo(w io.Writer) slog.Handler {
	replace := func(_ []string, a slog.Attr) slog.Attr {
		if err, is := a.Value.Any().(error); is {
			a.Value = slog.StringValue(optionflags.Text(err))
		}
		return a
	}
	options := &slog.HandlerOptions{Level: f.level(), ReplaceAttr: replace}
	if f.LogFormat == "json" {
		return slog.NewJSONHandler(w, options)
	}
	return slog.NewTextHandler(w, options)
}

// level returns the lowest level that is logged.
func (f Flags) level() (l slog.Level) {
	_ = l.UnmarshalText([]byte(f.Log)) // kong has checked it
	return l
}

// randomID returns the host's name, as far as it is a valid name, and a random suffix, to
// distinguish processes on one host.
func randomID() string {
	host, _ := os.Hostname()
	host = strings.Map(func(r rune) rune {
		if model.CheckName("host", string(r)) != nil {
			return '-'
		}
		return r
	}, host)
	const most = 40
	return host[:min(len(host), most)] + "-" + strings.ToLower(rand.Text()[:6])
}
