package attack_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/roles"
	"github.com/settlehq/settle/model"
)

// client is a client of a deployment, as a user of a role.
func (d *deployment) client(b *bus.Bus) *settle.Client {
	d.t.Helper()
	c, err := settle.NewClient(b, settle.ClientConfig{ID: "attacks"})
	d.must(err)
	d.t.Cleanup(c.Close)
	return c
}

// handled sends an event, waits for everything that it causes, and fails the test if it was not handled.
func (d *deployment) handled(c *settle.Client, space, stream, id string, payload any) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	out := settle.Outgoing{Space: space, Stream: stream, ID: settle.ID(id)}
	if payload != nil {
		v, err := settle.ValueOf(payload)
		d.must(err)
		out.Payload = v
	}
	r, err := c.Call(ctx, out)
	d.must(err)
	if r.Outcome != model.Handled {
		d.t.Fatalf("%s %s %s: %+v", space, stream, id, r)
	}
	_, err = c.Space(space).WaitTree(ctx, stream, settle.ID(id))
	d.must(err)
}

// ends returns the last sequences of all logs and lanes.
func (d *deployment) ends() (logs, lanes []uint64) {
	d.t.Helper()
	for p := range d.admin.Partitions() {
		s, err := d.admin.LogState(d.t.Context(), p, 0)
		d.must(err)
		end, err := d.admin.LaneEnd(d.t.Context(), p)
		d.must(err)
		logs, lanes = append(logs, s.Last), append(lanes, end)
	}
	return logs, lanes
}

func subjectOf(space, stream, id string) string {
	return fmt.Sprintf("settle.send.%d.%s.%s.%s", model.PartitionOf(space, 8), space, stream, id)
}

// Attack 3 of docs/security.md: a client numbers its events as another space would, leaves gaps between them, and takes the ids that the
// other space is about to use. What that space sends arrives, and is handled once.
func TestAttack_AForgedPositionSwallowsNoSend(t *testing.T) {
	t.Parallel()
	d := start(t)
	nc := d.attacker(roles.Client)
	const forged = 6000
	for i := range forged {
		m := nats.NewMsg(subjectOf("victim", "add", fmt.Sprintf("g%d", i)))
		m.Header.Set("Settle-Position", fmt.Sprint(2*i+3))
		m.Header.Set("Settle-Term", "1")
		d.must(nc.PublishMsg(m))
	}
	for n := range 20 { // as the space "source" would name its sends
		m := nats.NewMsg(subjectOf("victim", "add", fmt.Sprintf("source:%d:1:0", n)))
		m.Header.Set("Settle-Position", fmt.Sprint(n))
		m.Header.Set("Settle-Invalid", "gone")
		d.must(nc.PublishMsg(m))
	}
	d.must(nc.Flush())
	c := d.client(d.as(roles.Client))
	const sent = 10
	for i := range sent {
		d.handled(c, "source", "pass", fmt.Sprintf("p%d", i), "victim")
	}
	d.handled(c, "victim", "add", "last", nil)
	v, _, err := c.Space("victim").Get(t.Context(), "n")
	d.must(err)
	if n, _ := v.AsInt(); n != forged+sent+1 {
		t.Errorf("%d events were handled, want %d", n, forged+sent+1)
	}
}

// An event on an internal stream, with headers and ids that claim that a space has sent it: what a client may publish at all is rejected, and the
// subjects of what spaces send are not its own.
func TestAttack_InternalStreamsTakeNothingFromAClient(t *testing.T) {
	t.Parallel()
	d := start(t)
	nc := d.attacker(roles.Client)
	claims := func(id string) *nats.Msg {
		m := nats.NewMsg(subjectOf("victim", "credit", id))
		m.Header.Set("Settle-Position", "1")
		m.Header.Set("Settle-Term", "1")
		m.Data = []byte("100")
		return m
	}
	inside := claims("source:1:1:0")
	inside.Subject = strings.Replace(inside.Subject, ".send.", ".lane.", 1)
	for _, m := range []*nats.Msg{claims("plain"), claims("source:1:1:1"), inside} {
		d.must(nc.PublishMsg(m))
	}
	d.must(nc.Flush())
	c := d.client(d.as(roles.Client))
	d.handled(c, "victim", "add", "last", nil)
	rc, err := c.Space("victim").Await(t.Context(), "credit", settle.ID("plain"))
	if err != nil || rc.Outcome != model.Rejected || rc.Code != model.InternalStream {
		t.Errorf("%+v, %v", rc, err)
	}
	if v, _, err := c.Space("victim").Get(t.Context(), "credit"); !errors.Is(err, settle.ErrNotFound) && !v.IsAbsent() {
		t.Errorf("the document is %v, %v", v, err)
	}
}

// Attack 4: messages in the log that no runtime has made: each field of a commit has values that it cannot have. Each concerns its
// own space; other spaces go on, and so does what spaces send each other; and no number in it takes memory.
//
// It is not parallel, because it counts what the process allocates.
func TestAttack_AForgedCommitHurtsItsSpaceOnly(t *testing.T) {
	d := start(t)
	c := d.client(d.as(roles.Client))
	d.handled(c, "source", "pass", "first", "victim")
	entries, err := d.admin.ReadLog(t.Context(), "source", 0, 10)
	d.must(err)
	bodies := forgeries(t, entries[len(entries)-1].Data)
	if len(bodies) < 200 {
		t.Fatalf("only %d forgeries", len(bodies))
	}
	inside := d.as(roles.Operator) // a user outside cannot
	spaceOf := func(i int) string { return fmt.Sprintf("forged%d", i) }
	for i, body := range bodies {
		m := nats.NewMsg(fmt.Sprintf("settle.log.%d.%s", model.PartitionOf(spaceOf(i), 8), spaceOf(i)))
		m.Header.Set("Settle-Commit", "w1/1/1/x")
		m.Data = bytes.ReplaceAll(body, []byte(`"source"`), []byte(`"`+spaceOf(i)+`"`))
		if _, err := inside.Conn().RequestMsg(m, patience); err != nil {
			t.Fatal(err)
		}
	}
	before := allocated()
	var reading sync.WaitGroup
	gate := make(chan struct{}, 16)
	for i := range bodies {
		gate <- struct{}{}
		reading.Go(func() { // ends with its read
			defer func() { <-gate }()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			_, _, err := c.Space(spaceOf(i)).Get(ctx, "n")
			if errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a read of a space with the commit %.300s does not end", bodies[i])
			}
		})
	}
	reading.Wait()
	if more := allocated() - before; more > 1<<30 {
		t.Errorf("%d bytes were allocated for %d commits", more, len(bodies))
	}
	for i := range 16 { // of all partitions
		d.handled(c, fmt.Sprintf("other%d", i), "pass", "after", fmt.Sprintf("target%d", i))
	}
}

// allocated is how much memory has been allocated since the process began.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// hostile are values that fields of a commit cannot have, or that would be expensive if they were believed.
var hostile = []string{
	"null", "true", "-1", "0", "1", "1e300", "18446744073709551615", "9007199254740993", `""`, `"a.b"`, `"\u0000"`, `">"`, `"="`, "[]", "{}", "[null]", `[{}]`, `{"":{}}`,
}

// forgeries returns a commit with each of its values replaced by each hostile one, and some bodies that are none.
func forgeries(t *testing.T, commit []byte) (all [][]byte) {
	t.Helper()
	var root any
	if err := json.Unmarshal(commit, &root); err != nil {
		t.Fatal(err)
	}
	var walk func(at any, replace func(any) any)
	walk = func(at any, replace func(any) any) {
		for _, h := range hostile {
			body, err := json.Marshal(replace(json.RawMessage(h)))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, body)
		}
		switch at := at.(type) {
		case map[string]any:
			for k, v := range at { // any order: all are tried
				walk(v, func(with any) any {
					changed := map[string]any{}
					for name, value := range at { // any order: into a map
						changed[name] = value
					}
					changed[k] = with
					return replace(changed)
				})
			}
		case []any:
			for i, v := range at {
				walk(v, func(with any) any {
					changed := append([]any{}, at...)
					changed[i] = with
					return replace(changed)
				})
			}
		}
	}
	walk(root, func(with any) any { return with })
	deep := bytes.Repeat([]byte("["), 100_000)
	return append(all, nil, []byte("{"), []byte("\x00\xff"), deep, bytes.Repeat([]byte(`{"v":`), 50_000), commit[:len(commit)/2], append(commit, commit...))
}

// Attack 5: reads and watches of names that do not exist store nothing, and events are handled meanwhile.
func TestAttack_ReadsCreateNothing(t *testing.T) {
	t.Parallel()
	d := start(t)
	c := d.client(d.as(roles.Reader))
	sender := d.client(d.as(roles.Client))
	d.handled(sender, "real", "add", "first", nil)
	logs, lanes := d.ends()
	nc := d.attacker(roles.Reader)
	for i := range 100 { // as if a runtime were attached, and as another worker
		name := fmt.Sprintf("ghost%d", i)
		p := model.PartitionOf(name, 8)
		d.must(nc.Publish(fmt.Sprintf("settle.demand.%d", p), []byte(`{"space":"`+name+`","doc":"","watcher":"w","ttl":6000000000}`)))
		d.must(nc.Publish(fmt.Sprintf("settle.attached.%d", p), []byte(`{"space":"`+name+`","doc":"","watcher":"w","ttl":6000000000}`)))
		d.must(nc.Publish("settle.api.own-w1", []byte(`{"space":"`+name+`","document":"n","patience":"1000h"}`)))
	}
	d.must(nc.Flush())
	watching, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range 500 {
		all.Go(func() { // ends with watching
			for _, err := range c.Space(fmt.Sprintf("watched%d", i)).Watch(watching, "n") {
				if err != nil {
					return
				}
			}
		})
	}
	for i := range 300 {
		if v, rev, err := c.Space(fmt.Sprintf("read%d", i)).Get(t.Context(), "n"); err != nil || rev != 0 {
			t.Errorf("a document of a space that does not exist: %v at %d, %v", v, rev, err)
		}
	}
	if after, _ := d.ends(); fmt.Sprint(after) != fmt.Sprint(logs) {
		t.Errorf("reads have stored something: the logs end at %v, before at %v", after, logs)
	}
	d.handled(sender, "real", "add", "second", nil)
	if _, after := d.ends(); sum(after) != sum(lanes)+1 {
		t.Errorf("the lanes end at %v, before at %v", after, lanes)
	}
	for i := range 100 {
		if head, err := d.admin.Head(t.Context(), fmt.Sprintf("ghost%d", i)); err != nil || head != 0 {
			t.Errorf("space ghost%d has a log up to %d, %v", i, head, err)
		}
	}
	stop()
	all.Wait()
}

func sum(all []uint64) (n uint64) {
	for _, one := range all {
		n += one
	}
	return n
}
