package attack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/settlehq/settle/bus"
)

// An Attacker is a connection of a user that is not trusted.
type Attacker struct {
	Name string
	// Principal is in whose name the user may send, "" if it sends without one.
	Principal string
	Conn      *nats.Conn
}

// Plan says what is attacked.
type Plan struct {
	// Admin is a connection of a user that may create streams and read those of the deployment. It looks for what the attempts have
	// changed.
	Admin     *bus.Bus
	Attackers []Attacker
	// Log receives a line about each step. Nil discards it.
	Log io.Writer
}

// A Breach is something that has changed, or was seen, and should not have.
type Breach struct {
	// Attacker is the name of the user, and Group one of the kinds of attempts: messages, answers, headers, subscriptions.
	Attacker, Group string
	// What describes the change, and the attempt if it is known.
	What string
}

func (b Breach) String() string { return b.Attacker + ", " + b.Group + ": " + b.What }

// Report is the outcome of a run.
type Report struct {
	// Attempts is how many were made, and Refused how many of them the server refused.
	Attempts, Refused int
	Breaches          []Breach
}

// The groups.
const (
	Messages      = "messages"
	Answers       = "answers"
	Headers       = "headers"
	Subscriptions = "subscriptions"
)

// run is one run.
type run struct {
	plan   Plan
	names  names
	report Report
}

// Run makes all attempts. It creates a stream that no process uses, PREFIX_ATTACK_..., as a victim of requests to the JetStream API, and
// deletes it. What the attackers may send is stored: some events of a space that is named after the run, and their receipts. The error
// is one of the network, or that a user lacks what is needed for the attempt as such.
func Run(ctx context.Context, p Plan) (*Report, error) {
	if p.Log == nil {
		p.Log = io.Discard
	}
	prefix := p.Admin.Prefix()
	mark := "attack" + strings.ToLower(nuid.Next()[12:])
	r := &run{plan: p, names: names{prefix: prefix, upper: strings.ToUpper(prefix), mark: mark, parts: p.Admin.Partitions(), decoy: strings.ToUpper(prefix) + "_ATTACK_" + mark}}
	if err := r.createDecoy(ctx); err != nil {
		return nil, err
	}
	defer r.removeDecoy(ctx)
	first, err := r.look(ctx)
	if err != nil {
		return nil, err
	}
	for _, a := range p.Attackers {
		for _, group := range []struct {
			name string
			try  func(context.Context, Attacker) error
		}{{Messages, r.messages}, {Answers, r.answers}, {Headers, r.headers}, {Subscriptions, r.subscriptions}} {
			if err := r.group(ctx, a, group.name, group.try); err != nil {
				return nil, fmt.Errorf("%s, %s: %w", a.Name, group.name, err)
			}
		}
	}
	return &r.report, r.late(ctx, first)
}

// late reports what was stored so late that it was missed when its group ended.
func (r *run) late(ctx context.Context, first evidence) error {
	seen := map[string]bool{}
	for _, b := range r.report.Breaches {
		seen[b.What] = true
	}
	for name, was := range first { // any order: the report is for people
		found, err := r.marked(ctx, name, was.last)
		if err != nil {
			return err
		}
		for _, what := range found {
			if !seen[what] {
				r.breach(Attacker{Name: "one of them"}, Answers, what)
			}
		}
	}
	return nil
}

// group makes the attempts of one kind, and compares.
func (r *run) group(ctx context.Context, a Attacker, name string, try func(context.Context, Attacker) error) error {
	before, err := r.look(ctx)
	if err != nil {
		return err
	}
	attempts, refused := r.report.Attempts, r.report.Refused
	if err := try(ctx, a); err != nil {
		return err
	}
	if err := r.settle(ctx, a); err != nil {
		return err
	}
	after, err := r.look(ctx)
	if err != nil {
		return err
	}
	found, err := r.compare(ctx, a, before, after)
	if err != nil {
		return err
	}
	for _, what := range found {
		r.breach(a, name, what)
	}
	if len(found) > 0 { // the next group finds it as it should be
		if err := r.createDecoy(ctx); err != nil {
			return err
		}
	}
	fmt.Fprintf(r.plan.Log, "%s, %s: %d attempts, of which the server refused %d\n", a.Name, name, r.report.Attempts-attempts, r.report.Refused-refused)
	return nil
}

func (r *run) breach(a Attacker, group, what string) {
	r.report.Breaches = append(r.report.Breaches, Breach{Attacker: a.Name, Group: group, What: what})
}

// settle waits until what was attempted has had its effects: the server has processed the messages of the attacker in order, and processes
// of Settle those that they were given before a last one, which it waits for. Answers may be stored a moment after they were sent; servers of a cluster
// know of them by the time that a message has been stored after them.
func (r *run) settle(ctx context.Context, a Attacker) error {
	if err := a.Conn.FlushWithContext(bounded(ctx)); err != nil {
		return fmt.Errorf("wait for the server: %w", err)
	}
	for _, subject := range []string{r.names.prefix + ".api.tree", r.names.prefix + ".ping.w1"} {
		_, err := r.plan.Admin.Conn().RequestWithContext(bounded(ctx), subject, []byte("{}"))
		if err != nil && !errors.Is(err, nats.ErrNoResponders) {
			return fmt.Errorf("wait for the processes at %s: %w", subject, err)
		}
	}
	_, err := r.plan.Admin.JetStream().Publish(bounded(ctx), r.decoySubject("barrier"), nil)
	if err != nil && !errors.Is(err, jetstream.ErrNoStreamResponse) { // compare reports it
		return fmt.Errorf("wait for the streams: %w", err)
	}
	return r.plan.Admin.Conn().FlushWithContext(bounded(ctx))
}

// patience bounds each request.
const patience = 30 * time.Second

// bounded returns a context that ends with ctx, or after a while.
func bounded(ctx context.Context) context.Context {
	within, cancel := context.WithTimeout(ctx, patience)
	context.AfterFunc(within, cancel)
	return within
}
