// Command settle is Settle's command line for developers and operators: it works with a running
// deployment, and runs demonstrations and benchmarks
// in one process.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/flags"
	"github.com/settlehq/settle/internal/optionflags"
)

// cli is the whole command line. Help, defaults and environment variables all
// come from the tags.
type cli struct {
	Init  initCmd  `cmd:"" group:"Begin" help:"Write a first program, with its tests, into a new directory."`
	Dev   devCmd   `cmd:"" group:"Begin" help:"Run a whole deployment in this process, with your programs or a sample, and deploy them when they are saved."`
	Check checkCmd `cmd:"" group:"Begin" help:"Report unknown names and other mistakes of programs in Starlark, without running them."`
	Test  testCmd  `cmd:"" group:"Begin" help:"Run the tests of programs in Starlark, in virtual time."`

	Generate generateCmd `cmd:"" group:"Begin" help:"Write typed clients of a program."`

	Send  sendCmd  `cmd:"" group:"Documents and events" help:"Send an event to a running deployment."`
	Get   getCmd   `cmd:"" group:"Documents and events" help:"Print a document (-v: with its revision), or list the documents of a space."`
	Watch watchCmd `cmd:"" group:"Documents and events" help:"Print a document, and its newest value after each change."`
	Ls    lsCmd    `cmd:"" group:"Documents and events" help:"List spaces and the programs that they run."`

	Query    queryCmd    `cmd:"" group:"Documents and events" help:"Ask the documents and receipts of many spaces in SQL."`
	Receipts receiptsCmd `cmd:"" group:"Documents and events" help:"List receipts: how the events of a space ended, newest last."`
	Timers   timersCmd   `cmd:"" group:"Documents and events" help:"List timers, delayed events and jobs of a space."`
	Tree     treeCmd     `cmd:"" group:"Documents and events" help:"Print the events that an event has caused, and their outcomes."`
	Log      logCmd      `cmd:"" group:"Documents and events" help:"Print commits of a space: what changed, from which value to which, and why."`
	History  historyCmd  `cmd:"" group:"Documents and events" help:"Print the past values of a document, and which event each follows from."`
	Why      whyCmd      `cmd:"" group:"Documents and events" help:"Explain a node, a document or an event: why it ran or was changed last, and why it does not run now."`
	Lane     laneCmd     `cmd:"" group:"Documents and events" help:"Print what waits in a space, and why."`
	Graph    graphCmd    `cmd:"" group:"Documents and events" help:"Print the nodes of a space, their states and edges."`
	Dead     deadCmd     `cmd:"" group:"Documents and events" help:"List dead letters: events that failed or were refused."`
	Redrive  redriveCmd  `cmd:"" group:"Documents and events" help:"Send dead letters again."`
	Dismiss  dismissCmd  `cmd:"" group:"Documents and events" help:"Dismiss dead letters."`

	Cancel cancelCmd `cmd:"" group:"Documents and events" help:"Cancel an event that has not been handled yet."`
	Skip   skipCmd   `cmd:"" group:"Documents and events" help:"Cancel the next event of a space."`
	Export exportCmd `cmd:"" group:"Documents and events" help:"Print the documents of spaces as JSON lines."`
	Delete deleteCmd `cmd:"" group:"Documents and events" help:"Delete a space."`
	Import importCmd `cmd:"" group:"Documents and events" help:"Import exported documents into this or another deployment."`

	Workflow workflowCmd `cmd:"" group:"Documents and events" help:"Start, follow and end runs of workflows."`
	Schedule scheduleCmd `cmd:"" group:"Documents and events" help:"Start runs of workflows at times."`
	Perform  performCmd  `cmd:"" group:"Documents and events" help:"Perform an action of all spaces with a command, until interrupted."`

	Replay replayCmd `cmd:"" group:"Documents and events" help:"Write the history of a space as a test."`

	Deploy   deployCmd   `cmd:"" group:"Programs" help:"Deploy a program file to spaces."`
	Versions versionsCmd `cmd:"" group:"Programs" help:"List versions of programs, and the spaces that run them."`
	Upgrades upgradesCmd `cmd:"" group:"Programs" help:"Count the documents that are stored in older versions than the present one."`
	Rollback rollbackCmd `cmd:"" group:"Programs" help:"Restore the previous version of a program."`
	Pin      pinCmd      `cmd:"" group:"Programs" help:"Pin spaces to a version, regardless of later deployments."`
	Unpin    unpinCmd    `cmd:"" group:"Programs" help:"Remove a rule about spaces, so that a more general one applies."`

	Allow    allowCmd    `cmd:"" group:"Access" help:"Allow a principal to send events and to read documents."`
	Disallow disallowCmd `cmd:"" group:"Access" help:"Withdraw what a principal was allowed."`
	May      mayCmd      `cmd:"" name:"who-may" group:"Access" help:"Print the rules about access, or the principals that may send or read something."`

	Console     consoleCmd     `cmd:"" group:"Operation" help:"Serve the console of a running deployment: pages that show what happens and why."`
	Fleet       fleetCmd       `cmd:"" group:"Operation" help:"List workers, coordinators, the owners of partitions, and backlogs."`
	Drain       drainCmd       `cmd:"" group:"Operation" help:"Ask a worker to hand its partitions over and to stop, as SIGTERM does."`
	Top         topCmd         `cmd:"" group:"Operation" help:"Print which spaces and nodes take most time, on all workers."`
	Where       whereCmd       `cmd:"" group:"Operation" help:"Print a space's NATS subjects and buckets."`
	Doctor      doctorCmd      `cmd:"" group:"Operation" help:"Check a deployment: report problems, and what can be lost."`
	Provision   provisionCmd   `cmd:"" group:"Operation" help:"Create the missing parts of a deployment, and check the existing ones."`
	Backup      backupCmd      `cmd:"" group:"Operation" help:"Copy a running deployment to a directory."`
	Restore     restoreCmd     `cmd:"" group:"Operation" help:"Create a deployment from a backup."`
	AcceptLoss  acceptLossCmd  `cmd:"" group:"Operation" help:"Accept the loss of messages without which workers refuse to continue."`
	Quarantine  quarantineCmd  `cmd:"" group:"Operation" help:"Decide about stored messages that cannot be read, for which spaces are set aside."`
	Clone       cloneCmd       `cmd:"" group:"Operation" help:"Copy the documents and programs of a deployment to a new one with another name or number of partitions."`
	Audit       auditCmd       `cmd:"" group:"Operation" help:"List the commands that have changed the deployment: when, as which user, and what."`
	Permissions permissionsCmd `cmd:"" group:"Operation" help:"Print the permissions of each role, for a nats-server configuration."`

	Demo struct {
		Flights  demoFlightsCmd  `cmd:"" help:"Replay 20,000 real flights between 224 airports, each handled exactly once, while workers are killed."`
		Pipeline demoPipelineCmd `cmd:"" help:"Run a workflow over days of real flights: chunks, a fan-out, a loop with failing actions, a sleep and an approval, while workers are killed."`
		Role     demoRoleCmd     `cmd:"" hidden:""`
	} `cmd:"" group:"Demonstrations and measurements" help:"See it work on real data."`
	Bench struct {
		Counter benchCounterCmd `cmd:"" help:"Measure events handled exactly once per second, compared with the server's own throughput."`
		Hosted  benchHostedCmd  `cmd:"" help:"Compare programs in Starlark with the same programs in Go: several graphs, and a handler."`
		Spaces  benchSpacesCmd  `cmd:"" help:"Measure 100,000 spaces with 1,000 active at a time: memory, activations, and the cost of a dormant space."`
		Server  benchServerCmd  `cmd:"" hidden:"" help:"The server of bench spaces."`
		Endless benchEndlessCmd `cmd:"" help:"Measure one space that handles a million events: the size of the streams, and the duration of a restart."`
	} `cmd:"" group:"Demonstrations and measurements" help:"Measure, beside a plain JetStream client in the same run."`

	Load  loadCmd `cmd:"" group:"Demonstrations and measurements" help:"Send events at a rate, and compare them with the log in the end."`
	Chaos struct {
		Kill chaosKillCmd `cmd:"" help:"Kill a worker of settle dev, as SIGKILL would; it is started again a few seconds later."`
	} `cmd:"" group:"Demonstrations and measurements" help:"Break settle dev on purpose."`

	Version kong.VersionFlag `help:"Print the version and exit."`
}

// version is set by the linker in releases.
var version = "dev"

// description is the first sentence of the help.
const description = "Derived state, computed only while it is observed; events that take effect exactly once."

// exitError is an error with an exit code: 1 for a failure,
// 2 for a usage error. Without err, the error was printed already.
type exitError struct {
	code int
	err  error
}

func (e exitError) Error() string {
	if e.err == nil {
		return "see above"
	}
	return e.err.Error()
}
func (e exitError) Unwrap() error { return e.err }

// usage marks a usage error: exit code 2.
func usage(err error) error { return exitError{2, err} }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// streams are the outputs of a command: results, and messages.
type streams struct {
	out, err io.Writer
	// now is the clock for the progress of a long command.
	now func() time.Time
	// args are the arguments of the command line, for the audit trail.
	args []string
}

// run runs the program, with all its dependencies as arguments.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return runAt(ctx, args, streams{out: stdout, err: stderr, now: time.Now})
}

// runAt is run with a clock, and with further options of the grammar.
func runAt(ctx context.Context, args []string, io streams, options ...kong.Option) int {
	stdout, stderr := io.out, io.err
	exited := -1
	grammar := &cli{}
	parser, err := kong.New(grammar, append(options,
		flags.Names(&grammar.Dev.Worker),
		optionflags.OfBus(),
		kong.Name("settle"),
		kong.Description(description),
		kong.Vars{"version": version},
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { exited = code }),
		kong.UsageOnError(),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(streams{stdout, stderr, io.now, args}),
	)...)
	if err != nil {
		fmt.Fprintln(stderr, "settle:", err)
		return 1
	}
	if len(args) == 0 {
		args = []string{"help"}
	}
	if args[0] == "help" {
		args = append(slices.Clone(args[1:]), "--help")
	}
	command, err := parser.Parse(args)
	if exited >= 0 {
		return exited // help or version
	}
	if err == nil {
		err = command.Run()
	} else {
		err = usage(fmt.Errorf("%w%s (see %s --help)", err, meant(args, err), about(err)))
	}
	return report(stderr, err)
}

// about returns the command that a parse error is about, as far as it was recognised.
func about(err error) string {
	if e, ok := errors.AsType[*kong.ParseError](err); ok {
		if node := e.Context.Selected(); node != nil {
			return unbroken(node.FullPath())
		}
	}
	return "settle"
}

// meant returns a hint for an error about an unexpected argument, because a
// value of --wait follows an equals sign.
func meant(args []string, err error) string {
	for _, v := range []string{"receipt", "tree"} {
		if slices.Contains(args, "--wait") && err.Error() == "unexpected argument "+v {
			return "; did you mean --wait=" + v + "?"
		}
	}
	if len(args) > 0 && args[0] == "init" && err.Error() == `expected "<dir>"` {
		return ": a new directory such as door, or . for this one"
	}
	if strings.HasPrefix(err.Error(), "--at: ") && args[0] == "get" {
		return "; use a revision, as `settle get -v` prints it"
	}
	if strings.HasPrefix(err.Error(), "--at: ") {
		return "; use a time such as 2026-11-21T09:00:00Z or 2026-11-21T10:00:00+01:00"
	}
	return ""
}

// printed returns the text of an error with the flags of the command.
func printed(err error) string {
	text := optionflags.Text(err)
	if e, is := errors.AsType[*history.AmbiguousError](err); is {
		flags := " (--stream)"
		if slices.ContainsFunc(e.Found, func(r history.EventRef) bool { return r.Space != e.Found[0].Space }) {
			flags = " (--space, --stream)"
		}
		text += flags
	}
	return text
}

// report prints an error and returns the exit code.
func report(stderr io.Writer, err error) int {
	if err == nil {
		return 0
	}
	e, is := errors.AsType[exitError](err)
	if !is {
		e.code = 1
	}
	if !is || e.err != nil {
		fmt.Fprintln(stderr, "settle:", printed(err))
	}
	return e.code
}
