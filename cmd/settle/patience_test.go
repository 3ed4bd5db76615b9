package main

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/internal/fleet"
)

// The error of a command that times out names the process that did not answer.
func TestPatience_ItIsSaidWhoShouldHaveAnswered(t *testing.T) {
	t.Parallel()
	for said, f := range map[string]*fleet.Fleet{
		"w1 serves space s and does not answer; one that hangs is replaced within 15 s": {
			Workers:    []fleet.Member{{ID: "w1", State: fleet.Silent}, {ID: "w2", State: fleet.Here}},
			Partitions: []fleet.Partition{{Owner: "w2", Silent: []string{"w1"}}},
		},
		"w2 serves space s and answers": {
			Workers:    []fleet.Member{{ID: "w1", State: fleet.Silent}, {ID: "w2", State: fleet.Here}},
			Partitions: []fleet.Partition{{Owner: "w2", Silent: []string{"w1"}, Served: []string{"w2"}}},
		},
		"w1 serves space s and answers": {
			Workers:    []fleet.Member{{ID: "w1", State: fleet.Here}},
			Partitions: []fleet.Partition{{Owner: "w1", Served: []string{"w1"}}},
		},
		"w2 is taking space s over": {
			Workers:    []fleet.Member{{ID: "w1", State: fleet.Gone}, {ID: "w2", State: fleet.Here}},
			Partitions: []fleet.Partition{{Owner: "w2"}},
		},
		"no worker serves space s": {Partitions: []fleet.Partition{{}}},
	} {
		if got := serving(f, "s"); !strings.Contains(got, said) {
			t.Errorf("%q, want %q", got, said)
		}
	}
}

// The process that receives the request hangs.
func TestGet_SaysForWhomItHasWaitedInVain(t *testing.T) {
	t.Parallel()
	d := counting(t, -1)
	nc, err := nats.Connect(d.Server().ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if _, err := nc.Subscribe("settle.api.get", func(*nats.Msg) {}); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	want(t, 0, "stored", "send", "alice", "add")
	wantInVain(t, "no answer within TIMEOUT: no worker serves space alice", "get", "alice", "double")
	wantInVain(t, "no receipt within TIMEOUT: no worker serves space alice | is stored, and will be handled when a worker runs | settle tree",
		"send", "alice", "add", "--wait")
}

// Programs has no such space: the name is misspelt.
func TestSend_SaysThatASpaceHasNoProgram(t *testing.T) {
	t.Parallel()
	started(t, settle.Config{Programs: func(name string) *settle.Program {
		if name == "attic" {
			return nil
		}
		return counter()
	}})
	wantInVain(t, "no receipt within TIMEOUT: space attic has no program to run, and its events wait until it has one | Programs of the workers | the event is stored",
		"send", "attic", "book", "--wait")
	want(t, 1, "the space has no program to run", "get", "attic", "n")
	want(t, 0, "no program serves space attic: its events wait until one does | stored, lane sequence", "send", "attic", "book", "--id", "e2")
	for _, about := range []string{"lane", "why"} {
		line, code := []string{about, "attic"}, 0
		if about == "why" {
			line, code = append(line, "nosuch"), 1
		}
		want(t, code, "no program serves it: 2 events waiting since 20 | of stream book | settle deploy --space | have no effect", line...)
	}
	want(t, 0, "LANE | e2 | for a program of the space", "lane", "attic")
	want(t, 0, "it waits, and the space is unserved", "why", "attic", "e2")
	want(t, 1, "there is no space nosuch: nothing was ever handled there", "lane", "nosuch")
}
