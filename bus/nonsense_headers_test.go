package bus_test

import (
	"bufio"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/model"
)

// publishMalformed stores messages whose headers no client can decode.
func publishMalformed(t *testing.T, server *embedded.Server, subjects ...string) {
	t.Helper()
	conn, err := server.InProcessConn()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	in := bufio.NewReader(conn)
	until := func(what string) {
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(line, what) {
				return
			}
		}
	}
	until("INFO")
	write := func(text string) {
		if _, err := conn.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	write(`CONNECT {"verbose":false,"headers":true,"protocol":1}` + "\r\nSUB answer 1\r\n")
	const headers, body = "NATS/1.0\r\nno colon here\r\n\r\n", "7"
	for _, subject := range subjects {
		write(fmt.Sprintf("HPUB %s answer %d %d\r\n%s%s\r\n", subject, len(headers), len(headers)+len(body), headers, body))
		until("MSG answer")
	}
}

// A message with malformed headers is read like one without headers, and later messages are read.
func TestLane_MalformedHeadersHideNoOtherEvent(t *testing.T) {
	t.Parallel()
	server := natstest.StartServer(t, embedded.Config{})
	b := provisioned(t, bus.Config{Server: server, Partitions: 1})
	nc, _ := plain(t, server)
	for _, id := range []string{"e1", "e2", "e3"} {
		if id == "e2" {
			publishMalformed(t, server, "settle.lane.0.cart.add.e2")
			continue
		}
		if _, err := nc.Request("settle.lane.0.cart.add."+id, nil, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	events, err := b.ReadLane(t.Context(), "cart", 0, 10)
	if err != nil || len(events) != 3 || events[1].ID != "e2" || events[1].Depth != 0 || events[2].ID != "e3" {
		t.Errorf("read %+v, %v", events, err)
	}
	m, there, err := b.FindEvent(t.Context(), "cart", "add", "e2")
	if err != nil || !there || m.Seq != 2 {
		t.Errorf("found %+v, %v, %v", m, there, err)
	}
	all, err := b.FindEvents(t.Context(), "cart", "e2")
	if err != nil || len(all) != 1 {
		t.Errorf("found %+v, %v", all, err)
	}
}

// All readers of the lane interpret the headers of an event alike, whatever a client has written into them.
func TestLane_InvalidHeadersAreIgnored(t *testing.T) {
	t.Parallel()
	server := natstest.StartServer(t, embedded.Config{})
	b := provisioned(t, bus.Config{Server: server, Partitions: 1})
	nc, _ := plain(t, server)
	const most = "18446744073709551615"
	m := nats.NewMsg("settle.lane.0.cart.add.e1")
	m.Header = nats.Header{
		"Settle-Position": {most}, "Settle-Term": {most}, "Settle-Prev-Term": {"-1"}, "Settle-Depth": {most},
		"Settle-Not-Before": {most}, "Settle-Expires": {"soon"}, "Settle-Invalid": {"a tombstone"},
	}
	if _, err := nc.RequestMsg(m, time.Minute); err != nil {
		t.Fatal(err)
	}
	twice := nats.NewMsg("settle.lane.0.cart.add.e2")
	twice.Header = nats.Header{"SETTLE-DEPTH": {"1"}, "settle-depth": {"2"}, "SeTtLe-DePtH": {"3"}}
	if _, err := nc.RequestMsg(twice, time.Minute); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		events, err := b.ReadLane(t.Context(), "cart", 0, 10)
		if err != nil || len(events) != 2 {
			t.Fatal(events, err)
		}
		e := events[0]
		if e.Position != 0 || e.Term != 0 || e.PrevTerm != 0 || e.Depth != 0 || e.Invalid != "" || e.NotBefore != -1 || e.Expires != -1 {
			t.Fatalf("read %+v", e)
		}
		if e := events[1]; e.Depth != 1 {
			t.Fatalf("of three spellings, the depth %d counts; want that of the first in the order of bytes", e.Depth)
		}
	}
}

// A commit with malformed headers hides no other commit, and neither does an item of the state.
func TestLog_MalformedHeadersHideNoOtherCommit(t *testing.T) {
	t.Parallel()
	server := natstest.StartServer(t, embedded.Config{})
	b := provisioned(t, bus.Config{Server: server, Partitions: 1})
	nc, _ := plain(t, server)
	first := make(chan uint64, 1)
	b.Append(model.Append{Space: "cart", ID: "w1/0/0", Data: []byte(`{}`)}, func(seq uint64, err error) {
		if err != nil {
			t.Error(err)
		}
		first <- seq
	})
	<-first
	publishMalformed(t, server, "settle.log.0.cart", "$KV.SETTLE_STATE_0.cart.stats")
	if _, err := nc.Request("settle.log.0.cart", nil, time.Minute); err != nil {
		t.Fatal(err)
	}
	entries, err := b.ReadLog(t.Context(), "cart", 0, 10)
	if err != nil || len(entries) != 3 || entries[0].ID != "w1/0/0" || entries[1].ID != "" || entries[2].Seq != 3 {
		t.Errorf("read %+v, %v", entries, err)
	}
	if _, err := b.LoadState(t.Context(), "cart"); err == nil || !strings.Contains(err.Error(), "item stats, revision 1: it does not say which commit it reflects") {
		t.Error(err)
	}
}

// An item of a state without the sequence of its commit was not saved by Settle, and is rejected if it is a
// document; other items only save work, and are skipped. A key that an operator has deleted is no item.
func TestState_AnItemWithoutASequenceIsRejected(t *testing.T) {
	t.Parallel()
	server := natstest.StartServer(t, embedded.Config{})
	b := provisioned(t, bus.Config{Server: server, Partitions: 1})
	nc, _ := plain(t, server)
	put := func(key, seq string, operation ...string) {
		t.Helper()
		m := nats.NewMsg("$KV.SETTLE_STATE_0.cart." + key)
		m.Data = []byte("7")
		if seq != "" {
			m.Header["Settle-Seq"] = []string{seq}
		}
		if len(operation) > 0 {
			m.Header["KV-Operation"] = operation
		}
		if _, err := nc.RequestMsg(m, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"stats", "=later.3", "=origins.3", "=checkpoint"} {
		for _, seq := range []string{"", "soon", "-1", "18446744073709551615"} {
			put(key, seq)
			st, err := b.LoadState(t.Context(), "cart")
			if unreadable, is := errors.AsType[*model.UnreadableError](err); !is || unreadable.Space != "cart" || unreadable.Item != key {
				t.Errorf("with %q as the sequence of %s, the state is %+v, %v", seq, key, st, err)
			}
			put(key, "", "DEL")
			if st, err := b.LoadState(t.Context(), "cart"); err != nil || hasData(st.Docs, st.Later, st.Pieces, []model.StateDoc{st.Mark}) {
				t.Errorf("after %s was deleted, the state is %+v, %v", key, st, err)
			}
		}
	}
	put("=node.double", "")
	put("=due", "")
	put("stats", "5")
	st, err := b.LoadState(t.Context(), "cart")
	if err != nil || len(st.Docs) != 1 || st.Docs[0].Seq != 5 || hasData(st.Observations, st.Due) {
		t.Errorf("read %+v, %v", st, err)
	}
	if due, err := b.DueSpaces(t.Context(), 0); err != nil || len(due) > 0 {
		t.Errorf("due are %v, %v", due, err)
	}
}

func hasData(lists ...[]model.StateDoc) bool {
	return slices.ContainsFunc(slices.Concat(lists...), func(d model.StateDoc) bool { return d.Data != nil })
}
