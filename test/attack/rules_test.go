package attack_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/access"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/roles"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/model"
)

// withPrincipals is the change to the files for start that adds users of principals, with the permissions that `settle permissions
// --principal` prints.
func withPrincipals(t *testing.T, names ...string) []string {
	t.Helper()
	var b strings.Builder
	if err := roles.WritePermissions(&b, "settle", 8, names...); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "more.conf")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	users := readerLine
	for _, name := range names {
		users += "      { user: " + name + ", password: " + name + "1, permissions: $SETTLE_PRINCIPAL_" + name + " }\n"
	}
	permissions, err := os.ReadFile("../../deploy/nats/permissions.conf")
	if err != nil {
		t.Fatal(err)
	}
	return []string{readerLine, users, string(permissions), b.String()}
}

// allow changes a rule as the operator.
func (d *deployment) allow(principal string, change func(*access.Rule)) {
	d.t.Helper()
	_, err := access.Change(d.t.Context(), d.as(roles.Operator), principal, change)
	d.must(err)
}

// outcome sends an event as a principal, and returns how it ended, as a reader sees it.
func (d *deployment) outcome(b *bus.Bus, principal, space, id string) model.Outcome {
	d.t.Helper()
	return d.outcomeOf(b, principal, settle.Outgoing{Space: space, Stream: "add", ID: settle.ID(id)})
}

func (d *deployment) outcomeOf(b *bus.Bus, principal string, e settle.Outgoing) model.Outcome {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	c, err := settle.NewClient(b, settle.ClientConfig{ID: "p", Principal: principal})
	d.must(err)
	defer c.Close()
	_, err = c.Send(ctx, e)
	d.must(err)
	r, err := d.client(d.as(roles.Reader)).Space(e.Space).Await(ctx, e.Stream, settle.ID(model.EventIDOf(principal, e.ID.String())))
	d.must(err)
	return r.Outcome
}

// Attack 6 of docs/security.md: a user sends to, and reads, a space that is none of its business. Without a rule a deployment is open; with the first one it is closed,
// and each principal may do what a rule says, from then on. A user of a principal can neither send in another name nor read streams.
func TestAttack_APrincipalReachesWhatARuleAllows(t *testing.T) {
	t.Parallel()
	d := start(t, withPrincipals(t, "alice", "bob")...)
	as := map[string]*bus.Bus{"alice": d.as("alice"), "bob": d.as("bob"), "": d.as(roles.Client)}
	read := func(principal, space string) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		_, err := (&live.Client{Bus: as[principal], Principal: principal}).Get(ctx, live.Get{Space: space, Document: "n"})
		return err
	}
	for principal, b := range as { // any order: each on its own
		if got := d.outcome(b, principal, "open", "o"); got != model.Handled {
			t.Errorf("%q in an open deployment: %s", principal, got)
		}
		if err := read(principal, "open"); err != nil {
			t.Errorf("%q reads in an open deployment: %v", principal, err)
		}
	}
	for _, space := range []string{"cart-1", "purse-1"} {
		if got := d.outcome(as[""], "", space, "exists"); got != model.Handled {
			t.Fatalf("an event to %s is %s", space, got)
		}
	}

	d.allow("alice", func(r *access.Rule) { r.Send, r.Read = []string{"cart-*/add"}, []string{"cart-*/n"} })
	forbidden := func(err error) bool {
		s, is := errors.AsType[*model.ServiceError](err)
		return is && s.Code == model.CodeForbidden
	}
	until(t, "the rule is known", func() bool { return forbidden(read("bob", "cart-1")) })
	for _, c := range []struct {
		principal, space string
		may              bool
	}{{"alice", "cart-1", true}, {"alice", "purse-1", false}, {"bob", "cart-1", false}, {"", "cart-1", false}, {"", "open", false}} {
		want := map[bool]model.Outcome{true: model.Handled, false: model.Refused}[c.may]
		if got := d.outcome(as[c.principal], c.principal, c.space, "e1"); got != want {
			t.Errorf("%q sends to %s: %s, want %s", c.principal, c.space, got, want)
		}
		if err := read(c.principal, c.space); forbidden(err) == c.may || c.may && err != nil {
			t.Errorf("%q reads of %s: %v, want allowed: %v", c.principal, c.space, err, c.may)
		}
	}

	// Rules do not concern operators.
	as[model.Operator] = d.as(roles.Operator)
	if got := d.outcome(as[model.Operator], model.Operator, "purse-1", "e1"); got != model.Handled {
		t.Errorf("an operator's event is %s", got)
	}
	if err := read(model.Operator, "purse-1"); err != nil {
		t.Errorf("an operator reads: %v", err)
	}

	// What a space does outside, and what it sends, needs no rule.
	d.allow("alice", func(r *access.Rule) { r.Send = append(r.Send, "cart-*/order") })
	c, err := settle.NewClient(as["alice"], settle.ClientConfig{ID: "orders", Principal: "alice"})
	d.must(err)
	t.Cleanup(c.Close)
	tries := 0
	until(t, "an order of alice's is handled, and the mail that it makes is reported as sent", func() bool {
		tries++
		_, err := c.Send(t.Context(), settle.Outgoing{Space: "cart-2", Stream: "order", ID: settle.ID(fmt.Sprintf("o%d", tries))})
		d.must(err)
		v, _, err := d.client(d.as(roles.Reader)).Space("cart-2").Get(t.Context(), "mailed")
		d.must(err)
		text, _ := v.AsString()
		return text == "it is sent"
	})

	// A watch ends when it is no longer allowed.
	watching := make(chan error, 1)
	go func() { // ends with the watch
		q := live.Watch{Space: "cart-1", Document: "n"}
		watching <- (&live.Client{Bus: as["alice"], Principal: "alice"}).Watch(t.Context(), q, func(live.Event) {})
	}()
	d.allow("alice", func(r *access.Rule) { r.Read = nil })
	if err := <-watching; !forbidden(err) {
		t.Errorf("a watch that is no longer allowed ends with %v", err)
	}

	// What the servers refuse a principal.
	others := []string{
		subjectOf("cart-1", "add", "e9") + ".alice", subjectOf("cart-1", "add", "e9") + ".operator", "settle.api.get.alice", "settle.api.get.operator", "settle.api.watch.operator",
	}
	for user, subjects := range map[string][]string{ // any order: each on its own
		"bob": append([]string{
			subjectOf("cart-1", "add", "e9"), "settle.api.get", "settle.api.tree", "settle.own.0",
			"settle.js.DIRECT.GET.SETTLE_LOG_0", "settle.js.STREAM.MSG.GET.SETTLE_LOG_0", "settle.js.STREAM.INFO.SETTLE_LOG_0", "settle.demand.0",
		}, others...),
		roles.Client: others,
		roles.Reader: others,
	} {
		nc := d.attacker(user)
		for _, subject := range subjects {
			before := nc.LastError()
			d.must(nc.Publish(subject, []byte("{}")))
			d.must(nc.Flush())
			if nc.LastError() == before { //nolint:errorlint // is it the very same?
				t.Errorf("%s may publish to %s", user, subject)
			}
		}
	}
}

// The end of an action is an event that a worker mints. A client, or a principal with a rule for all streams, cannot report that a
// payment was made; and what a rule has refused is refused again when it is redriven.
func TestAttack_NoClientReportsTheEndOfAnAction(t *testing.T) {
	t.Parallel()
	d := start(t, withPrincipals(t, "alice", "bob")...)
	alice, client := d.as("alice"), d.as(roles.Client)
	if got := d.outcome(client, "", "cart-1", "exists"); got != model.Handled {
		t.Fatalf("the first event is %s", got)
	}
	d.allow("alice", func(r *access.Rule) { r.Send = []string{"cart-*/*"} })
	tries := 0
	until(t, "the rule is known", func() bool {
		tries++
		return d.outcome(client, "", "cart-1", fmt.Sprintf("e%d", tries)) == model.Refused
	})
	forged := settle.Outgoing{Space: "cart-1", Stream: "mail", ID: settle.ID("forged"), Payload: map[string]any{"key": "o1", "n": 1, "out": "FORGED"}}
	for principal, b := range map[string]*bus.Bus{"": client, "alice": alice} { // any order: each on its own
		if got := d.outcomeOf(b, principal, forged); got != model.Refused {
			t.Errorf("%q reports the end of an action: %s", principal, got)
		}
	}
	if got := d.outcomeOf(alice, "alice", settle.Outgoing{Space: "cart-1", Stream: "order", ID: settle.ID("o1")}); got != model.Handled {
		t.Errorf("an order is %s", got)
	}
	until(t, "the true end is reported", func() bool {
		v, _, err := d.client(d.as(roles.Reader)).Space("cart-1").Get(t.Context(), "mailed")
		d.must(err)
		text, _ := v.AsString()
		return text == "it is sent"
	})

	operator := d.client(d.as(roles.Operator)).Space("cart-1")
	var again history.EventRef
	until(t, "a coordinator has written the dead letter", func() bool {
		var err error
		again, _, err = operator.Redrive(t.Context(), "mail", settle.ID("alice=forged"))
		var none *history.NoLetterError
		if !errors.As(err, &none) {
			d.must(err)
		}
		return err == nil
	})
	r, err := operator.Await(t.Context(), "mail", settle.ID(again.Event))
	d.must(err)
	if r.Outcome != model.Refused {
		t.Errorf("what a rule has refused is %s when it is redriven", r.Outcome)
	}
}

// The server sends the answer to an imported request to the subject that the request names: a user that sees another one's inbox can have an
// answer of its own choice sent there, such as the acknowledgement of an event that is not stored. So no principal and no reader sees the inbox of
// another user.
func TestAttack_NoAnswerIsForged(t *testing.T) {
	t.Parallel()
	files := withPrincipals(t, "alice", "bob")
	files[1] += "      { user: grafana, password: grafana1, permissions: $SETTLE_READER }\n"
	d := start(t, files...)
	if _, _, err := d.client(d.as("grafana")).Space("cart-1").Get(t.Context(), "n"); err != nil {
		t.Errorf("a reader with a name of its own: %v", err)
	}
	if got := d.outcome(d.as("bob"), "bob", "cart-1", "e1"); got != model.Handled {
		t.Errorf("bob's event is %s", got)
	}
	for _, user := range []string{"alice", roles.Reader} {
		nc := d.attacker(user)
		for _, subject := range []string{"_INBOX.>", "_INBOX_bob.>", "_INBOX_bob.x", "*.>", "_INBOX_alice2.>"} {
			before := nc.LastError()
			_, err := nc.SubscribeSync(subject)
			d.must(err)
			d.must(nc.Flush())
			if nc.LastError() == before { //nolint:errorlint // is it the very same?
				t.Errorf("%s may subscribe to %s", user, subject)
			}
		}
	}

	// A user whose name is not that of its permissions names its prefix.
	_, err := bus.Connect(t.Context(), bus.Config{URL: d.server.ClientURL(), User: "bob", Password: "bob1", InboxPrefix: "_INBOX_other"})
	if err == nil {
		t.Error("bob is connected with the inbox of another user")
	}
}

// What docs/security.md says remains: the server compares sequences for a user that publishes directly, and so shows whether an event exists whose
// full name the user knows, in the same lane, and its sequence. It shows nothing of what is in it.
func TestAttack_WhatAHeaderReveals(t *testing.T) {
	t.Parallel()
	d := start(t, withPrincipals(t, "alice", "bob")...)
	_ = d.outcome(d.as("alice"), "alice", "cart-1", "secret")
	nc := d.attacker("bob")
	probe := func(id string) string {
		m := nats.NewMsg(subjectOf("cart-1", "add", "probe") + ".bob")
		m.Header.Set("Nats-Expected-Last-Subject-Sequence", "9999")
		m.Header.Set("Nats-Expected-Last-Subject-Sequence-Subject", subjectOf("cart-1", "add", id)+".alice")
		answer, err := nc.RequestMsg(m, patience)
		d.must(err)
		return string(answer.Data)
	}
	if there, not := probe("secret"), probe("other"); !strings.Contains(there, "wrong last sequence: 1") || !strings.Contains(not, "wrong last sequence: 0") {
		t.Errorf("a probe shows %s and %s", there, not)
	}
}

// A watch of a user outside ends when nothing receives it: the servers do not report that to the worker, so it is to be asked for again. One that is
// received goes on, and its client notices nothing of that. A principal has a part of a worker's watches.
func TestAttack_AbandonedWatchesEnd(t *testing.T) {
	t.Parallel()
	d := start(t, withPrincipals(t, "alice", "bob")...)
	d.worker.Kill()
	short := live.Config{Renewal: time.Second, MaxWatchesEach: 5}
	w, err := settle.StartWorker(t.Context(), d.as(roles.Worker), settle.WorkerConfig{ID: "w2", Programs: settle.Always(shop()), Live: short})
	d.must(err)
	t.Cleanup(w.Kill)

	bob := d.as("bob")
	if got := d.outcome(bob, "bob", "cart-1", "e1"); got != model.Handled {
		t.Fatalf("an event is %s", got)
	}
	const watches = 4 // of five: one that is renewed counts once
	kinds := map[live.Kind]int{}
	last := map[int]string{} // by watch
	var mu sync.Mutex
	for i := range watches {
		b := d.as("bob")
		go func() { // ends with the test
			q := live.Watch{Space: "cart-1", Document: "n"}
			_ = (&live.Client{Bus: b, Principal: "bob"}).Watch(t.Context(), q, func(e live.Event) {
				mu.Lock()
				defer mu.Unlock()
				if kinds[e.Kind]++; e.Kind == live.Value {
					last[i] = string(e.Data)
				}
			})
		}()
	}
	has := func(n int) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			for i := range watches {
				if last[i] != strconv.Itoa(n) {
					return false
				}
			}
			return true
		}
	}
	beats := func() int {
		mu.Lock()
		defer mu.Unlock()
		return kinds[live.Beating]
	}
	until(t, "the first value is received", has(1))

	nc := d.attacker("alice")
	question := []byte(`{"space":"cart-1","document":"n"}`)
	refused := func() bool {
		sub, err := nc.SubscribeSync(nc.NewInbox())
		d.must(err)
		d.must(nc.PublishRequest("settle.api.watch.alice", sub.Subject, question))
		m, err := sub.NextMsg(patience)
		d.must(err)
		d.must(sub.Unsubscribe())
		return strings.Contains(m.Header.Get("Nats-Service-Error"), "principal alice has 5 live queries")
	}
	for i := range 5 {
		d.must(nc.PublishRequest("settle.api.watch.alice", fmt.Sprintf("nothing.receives.%d", i), question))
	}
	until(t, "alice has as many watches as it may", refused)
	until(t, "they have ended", func() bool { return !refused() })

	for i := 2; i <= 4; i++ { // a renewal, at least, between them
		if got := d.outcome(bob, "bob", "cart-1", fmt.Sprintf("e%d", i)); got != model.Handled {
			t.Fatalf("an event is %s", got)
		}
		until(t, "the next value is received", has(i))
		began := beats()
		until(t, "two heartbeats of each pass", func() bool { return beats() >= began+2*watches })
	}
	mu.Lock()
	defer mu.Unlock()
	if kinds[live.Broken] > 0 || kinds[live.Connected] != watches {
		t.Errorf("the watches that are received have %v", kinds)
	}
}
