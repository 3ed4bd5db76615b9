package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/provision"
	"github.com/settlehq/settle/bus/roles"
	"github.com/settlehq/settle/bus/survey"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/internal/doctor"
	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/internal/optionflags"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
)

// doctorCmd is `settle doctor`.
type doctorCmd struct {
	connection
	Monitor        []string      `help:"Monitoring ports of the servers, such as http://127.0.0.1:8222, which report their fsync settings." placeholder:"URL"`
	SystemCreds    string        `help:"Credentials file of a user of the system account, which can query all servers." type:"existingfile" placeholder:"FILE"`
	SystemUser     string        `help:"User of the system account, with the password in SETTLE_SYSTEM_PASSWORD." placeholder:"USER"`
	SystemPassword string        `hidden:"" env:"SETTLE_SYSTEM_PASSWORD"`
	BackupAge      time.Duration `help:"The largest age of the newest backup; 0 checks no backups." default:"168h" env:"SETTLE_BACKUP_AGE"`
	Acknowledge    bool          `help:"First acknowledge all streams that have gone back to an earlier state, so that they are no longer reported. Needs the role operator."`
	Attack         bool          `help:"Try, as the users of --attack-creds and --attack-user, what would change the deployment past its borders, and report what succeeds. For a staging system. Needs the role administrator."`
	AttackCreds    []string      `help:"Credentials files of users that are not trusted." type:"existingfile" placeholder:"FILE"`
	AttackUser     string        `help:"A user that is not trusted, with the password in SETTLE_ATTACK_PASSWORD." placeholder:"USER"`
	AttackPassword string        `hidden:"" env:"SETTLE_ATTACK_PASSWORD"`
	JSON           bool          `name:"json" help:"Print one JSON object; with --watch, one a line."`
	Watch          bool          `help:"Repeat, and print changes, until interrupted."`
	Every          time.Duration `help:"The interval of --watch." default:"15s"`
}

// Help returns the long help.
func (doctorCmd) Help() string {
	return "Changes nothing, except with --acknowledge and --attack. Exit status: 0 if all is well, 1 if there are warnings, 2 if something must be repaired or no server could be reached; with --watch, 0 when it is interrupted. docs/operations.md explains each finding."
}

// Run examines a deployment, and prints the findings and what can be lost.
func (c *doctorCmd) Run(ctx context.Context, io streams) error {
	c.useLocalServer()
	if c.Acknowledge {
		if err := c.acknowledge(ctx, io); err != nil {
			return err
		}
	}
	if c.Attack {
		return c.attack(ctx, io)
	}
	if c.Watch {
		return c.watch(ctx, io)
	}
	report, err := c.look(ctx)
	if err != nil {
		return usage(err)
	}
	if c.JSON {
		out := json.NewEncoder(io.out)
		out.SetEscapeHTML(false)
		out.SetIndent("", "  ")
		err = out.Encode(report)
	} else {
		err = report.Print(io.out)
	}
	if err != nil || report.Level == doctor.OK {
		return err
	}
	return exitError{int(report.Level), errors.New(worst(report))}
}

// acknowledge records that the operator knows of the streams that have gone back.
func (c *doctorCmd) acknowledge(ctx context.Context, io streams) error {
	b, err := bus.Connect(ctx, c.observer())
	if err != nil {
		return usage(err)
	}
	defer b.Kill()
	ctx, end := context.WithTimeout(ctx, processesTime)
	defer end()
	n, err := b.AcknowledgeRewinds(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(io.err, "%s acknowledged\n", display.Count(n, "rewind"))
	return err
}

// observer returns the configuration of a connection that changes nothing.
func (c *doctorCmd) observer() bus.Config {
	cfg := c.config("doctor/" + fmt.Sprint(os.Getpid()))
	cfg.AckTimeout = 3 * time.Second
	return cfg
}

// look examines the deployment once. It fails if no server could be reached.
func (c *doctorCmd) look(ctx context.Context) (*doctor.Report, error) {
	cfg := c.observer()
	survey, err := survey.New(ctx, cfg, survey.Config{Monitor: c.Monitor, SystemCreds: c.SystemCreds, SystemUser: c.SystemUser, SystemPassword: c.SystemPassword})
	if err != nil {
		return nil, err
	}
	if survey.JetStream != nil || survey.NoDeployment || survey.Partitions == 0 {
		return doctor.Judge(survey, nil, nil, c.BackupAge), nil
	}
	f, err := processes(ctx, cfg)
	return doctor.Judge(survey, f, err, c.BackupAge), ctx.Err() // with f, err is of streams, which the survey has seen
}

// processesTime is the time limit for the figures of all processes together.
const processesTime = 10 * time.Second

// processes returns the figures of workers and coordinators.
func processes(ctx context.Context, cfg bus.Config) (*fleet.Fleet, error) {
	ctx, end := context.WithTimeout(ctx, processesTime)
	defer end()
	b, err := bus.Connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer b.Kill()
	return fleet.Look(ctx, b)
}

// watch repeats the examination, and prints changes.
func (c *doctorCmd) watch(ctx context.Context, io streams) error {
	if c.Every <= 0 {
		return usage(fmt.Errorf("--every %v: use a positive duration", c.Every))
	}
	var changes doctor.Changes
	for {
		report, err := c.look(ctx)
		if ctx.Err() != nil {
			return nil // interrupted, which is the normal end
		}
		if err != nil {
			report = doctor.Unreachable(err)
		}
		for _, change := range changes.Since(report) {
			change.At = time.Now().UTC()
			if err := c.printChange(io, change); err != nil {
				return err
			}
		}
		if pause.For(ctx, c.Every) != nil {
			return nil
		}
	}
}

func (c *doctorCmd) printChange(io streams, change doctor.Change) error {
	if c.JSON {
		return printLine(io.out, change)
	}
	_, err := fmt.Fprintln(io.out, change)
	return err
}

// worst names the checks with findings.
func worst(r *doctor.Report) string {
	var checks []string
	for _, f := range r.Findings {
		if f.Level == r.Level && (len(checks) == 0 || checks[len(checks)-1] != f.Check) {
			checks = append(checks, f.Check)
		}
	}
	return fmt.Sprintf("%s: %s", r.Level, strings.Join(checks, ", "))
}

// provisionCmd is `settle provision`.
type provisionCmd struct {
	connection
	Partitions       int           `bus:"Partitions"`
	Horizon          time.Duration `bus:"Horizon"`
	Replicas         int           `bus:"Replicas"`
	LaneMaxBytes     int64         `bus:"LaneMaxBytes"`
	DeadLetterMaxAge time.Duration `bus:"DeadLetterMaxAge"`
	Wait             time.Duration `help:"How long to retry while the servers are not ready." default:"0"`
}

// Run creates the missing parts of a deployment, and checks the others.
func (c *provisionCmd) Run(ctx context.Context, io streams) error {
	c.useLocalServer()
	if c.Wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.Wait)
		defer cancel()
	}
	for {
		err := c.once(ctx, io)
		if _, altered := errors.AsType[*provision.AssetError](err); err == nil || altered || c.Wait == 0 || ctx.Err() != nil {
			return err
		}
		fmt.Fprintln(io.err, "not yet:", err)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return err
		}
	}
}

func (c *provisionCmd) once(ctx context.Context, io streams) error {
	cfg := c.config("client/provision")
	optionflags.FillBus(&cfg, c)
	b, err := bus.Connect(ctx, cfg)
	if err != nil {
		return err
	}
	defer b.Close()
	if err := b.Provision(ctx); err != nil {
		return err
	}
	fmt.Fprintf(io.out, "deployment %s: %d partitions, horizon %v\n", c.Prefix, b.Partitions(), b.Horizon())
	return nil
}

// permissionsCmd is `settle permissions`.
type permissionsCmd struct {
	Prefix     string   `help:"The prefix of the deployment's subjects." default:"settle" env:"SETTLE_PREFIX"`
	Partitions int      `help:"Partitions of the deployment." default:"8" env:"SETTLE_PARTITIONS"`
	Principal  []string `help:"Print the permissions of users of these principals, too." placeholder:"NAME"`
}

// Run prints the permissions of each role, for a nats-server configuration.
func (c *permissionsCmd) Run(io streams) error {
	for _, name := range c.Principal {
		err := model.CheckPrincipal(name)
		if slices.ContainsFunc(roles.Of(bus.DefaultPrefix, 1), func(r roles.Role) bool { return r.Name == name }) {
			err = errors.Join(err, fmt.Errorf("principal %s: a role has this name, and inboxes of that name; use another one", name))
		}
		if err != nil {
			return usage(err)
		}
	}
	return roles.WritePermissions(io.out, cmp.Or(c.Prefix, bus.DefaultPrefix), c.Partitions, c.Principal...)
}
