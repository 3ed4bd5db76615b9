//go:build unix

package main

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alecthomas/kong"

	"github.com/settlehq/settle/internal/optionflags"
	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/test/chaos/history"
	"github.com/settlehq/settle/test/chaos/soak"
)

func newTestNemesis(topology, only string) *nemesis {
	return newNemesis(&deployment{o: &options{Topology: topology, Only: only}, net: &network{}, disk: &disk{}}, 7)
}

func kinds(list []fault) (names []string) {
	for _, f := range list {
		names = append(names, f.kind)
	}
	return names
}

func TestAMachineThatAllowsLessGetsFewerFaults(t *testing.T) {
	n := newTestNemesis(topologyCluster, "")
	if got := kinds(n.possible(n.serverFaults())); !slices.Contains(got, faultDisk) || !slices.Contains(got, faultCutNode) || !slices.Contains(got, faultKillAll) {
		t.Errorf("a cluster on a machine that allows everything: %v", got)
	}
	n.d.net, n.d.disk = nil, nil
	for _, kind := range append(kinds(n.possible(n.serverFaults())), kinds(n.possible(n.processFaults()))...) {
		if kind == faultDisk || kind == faultCutNode || kind == faultCutWorker {
			t.Errorf("without network and disk: %s", kind)
		}
	}
	n = newTestNemesis(topologySingle, faultKillWorker+", "+faultKillNode)
	if got := append(kinds(n.possible(n.processFaults())), kinds(n.possible(n.serverFaults()))...); !slices.Equal(got, []string{faultKillWorker, faultKillNode}) {
		t.Errorf("of two kinds that were asked for: %v", got)
	}
	n = newTestNemesis(topologySingle, "")
	n.d.o.Brief = true
	if got := kinds(n.possible(n.processFaults())); slices.Contains(got, faultStopLong) {
		t.Errorf("in a brief run: %v", got)
	}
}

// The same seed causes the same faults; each kind occurs once before any occurs twice.
func TestFaultsFollowFromTheSeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sequence := func(seed uint64) (order []string) {
			n := newTestNemesis(topologySingle, "")
			n.seed = seed
			var faults []fault
			for i := range 6 {
				kind := fmt.Sprint("fault ", i)
				faults = append(faults, fault{kind, 1 + i, func(ctx context.Context, f *injury) (string, error) {
					order = append(order, kind)
					f.hold(ctx, time.Second, 3*time.Second)
					return "", nil
				}})
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			if err := n.sequence(ctx, 1, faults, 4*time.Second, false); err != nil {
				t.Fatal(err)
			}
			return order
		}
		a, b, c := sequence(1), sequence(1), sequence(2)
		if !slices.Equal(a, b) || slices.Equal(a, c) {
			t.Errorf("seed 1: %v, again %v; seed 2: %v", a, b, c)
		}
		if first := slices.Sorted(slices.Values(a[:6])); len(slices.Compact(first)) != 6 {
			t.Errorf("the first six are %v", a[:6])
		}
	})
}

func TestAKillIsPlainIfNothingElseGoesOn(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(1000+s), 0) }
	n := newTestNemesis(topologySingle, "")
	n.events = []*event{
		{Kind: faultKillWorker, At: at(0), Healed: at(2)},
		{Kind: faultKillNode, At: at(20), Healed: at(25), Server: true},
		{Kind: faultStopLong, At: at(60), Healed: at(80)},
		{Kind: faultDisk, At: at(100), Server: true}, // not ended yet
	}
	for _, c := range []struct {
		from, to      int
		plain, server bool
	}{{0, 1, true, false}, {19, 21, false, true}, {34, 36, false, true}, {40, 50, true, false}, {70, 71, false, false}, {81, 90, true, false}, {500, 501, false, true}} {
		if plain, server := n.during(at(c.from), at(c.to)); plain != c.plain || server != c.server {
			t.Errorf("from %d to %d: plain %v, server %v", c.from, c.to, plain, server)
		}
	}
}

func TestRecordsAreReadBackAsTheyWereWritten(t *testing.T) {
	rec, err := newRecords(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer rec.close()
	w := history.Workload{Seed: 1, Spaces: 3, Clients: 4}
	for i := range 1000 {
		rec.acks.add(ackRecord{Client: 3, Space: uint16(i % 3), N: uint32(i/3 + 1), Lane: uint64(i)})
	}
	rec.watches.add(watchRecord{Observer: 1, Session: 2, Space: 2, Doc: history.Hash(history.DocView), Revision: 9})
	rec.receipts.add(receiptRecord{Client: 1, Space: 1, N: 1, Outcome: history.Hash("handled")})
	c := history.New(w, 1)
	if err := rec.tell(c, w, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if n := c.Counts; n.Acked != 1000 || n.Sessions != 1 || n.Deliveries != 1 || n.Receipts != 1 {
		t.Errorf("%+v", n)
	}
}

func TestAPickIsOneThatRuns(t *testing.T) {
	f := &injury{newTestNemesis(topologySingle, ""), rand.New(rand.NewPCG(1, 1))}
	if c, err := f.pick([]*child{{name: "w1"}}); err == nil {
		t.Errorf("picked %s, which does not run", c.name)
	}
}

// A piece with power cuts runs the whole workload on disks whose power is cut.
func TestSoak_EveryProfileIsARun(t *testing.T) {
	cut := 0
	for i := range profiles {
		how := &profiles[i]
		var c commands
		k, err := kong.New(&c, optionflags.OfBus())
		if err != nil {
			t.Fatal(err)
		}
		s := soakCmd{Piece: 10 * time.Minute, Rate: 600, Cuts: 20}
		if _, err := k.Parse(s.args(&soak.Piece{Seed: 7}, how, "result")); err != nil {
			t.Fatalf("%s: %v", how.name, err)
		}
		o := &c.Run.options
		if err := o.fill(); err != nil {
			t.Errorf("%s: %v", how.name, err)
		}
		n := newNemesis(&deployment{o: o, net: &network{}}, o.Seed)
		powers := 0
		for _, kind := range kinds(n.possible(n.serverFaults())) {
			if kind == faultPower || kind == faultPowerAll {
				powers++
			}
		}
		if strings.HasPrefix(how.name, "power cuts") {
			cut++
			if powers != 1 || !o.Power || o.MinCuts != 20 || o.Hosted == 0 || o.lossy() != strings.Contains(how.name, "every 2 minutes") {
				t.Errorf("%s: %d kinds of power cuts, %+v", how.name, powers, *o)
			}
		} else if powers != 0 || o.Power {
			t.Errorf("%s: %d kinds of power cuts", how.name, powers)
		}
	}
	if cut != 3 {
		t.Errorf("%d profiles have power cuts", cut)
	}
}

// The command line that repeats a run has all its flags, and its random seed.
func TestTheReportSaysHowToRunItAgain(t *testing.T) {
	got := again([]string{"run", "--power", "--only", "power cut,it's"}, 7)
	if want := `go run ./test/chaos run --power --only 'power cut,it'\''s' --seed 7`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	var c commands
	k, err := kong.New(&c, optionflags.OfBus())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Parse([]string{"run", "--seed", "3", "--power", "--seed", "7"}); err != nil || c.Run.Seed != 7 {
		t.Errorf("the last seed does not count: %d, %v", c.Run.Seed, err)
	}
}

func TestBadOptionsAreRefused(t *testing.T) {
	good := options{Spaces: 24, Clients: 16, Workers: 3, Coordinators: 2, Partitions: 8}
	if err := good.fill(); err != nil || good.Seed == 0 {
		t.Errorf("%v, seed %d", err, good.Seed)
	}
	for _, o := range []options{{}, {Spaces: 1, Clients: 2, Workers: 1, Coordinators: 1, Partitions: 1}, {Spaces: 2, Clients: 2, Workers: 1, Coordinators: 1, Partitions: 65}} {
		if o.fill() == nil {
			t.Errorf("%+v passes", o)
		}
	}
	for _, o := range []options{{Topology: topologyCluster, Sync: "default", Power: true}, {Topology: topologySingle, Sync: "interval", Power: true, Purge: 1}} {
		o.Spaces, o.Clients, o.Workers, o.Coordinators, o.Partitions = good.Spaces, good.Clients, good.Workers, good.Coordinators, good.Partitions
		if err := o.fill(); err == nil || !o.lossy() {
			t.Errorf("%+v passes", o)
		}
	}
}

// An observer over HTTP understands the gateway's ids: a revision and a fingerprint of the content.
func TestObservers_ReadWhatTheGatewaySends(t *testing.T) {
	rec, err := newRecords(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	o := &observer{all: &observers{rec: rec}}
	id := live.Known{Revision: 17, Print: "0c85d1734a16"}
	lines := fmt.Sprintf("retry: 1000\n\nid: %s\nevent: value\ndata: 2\n\n", id)
	if err := o.take(bufio.NewScanner(strings.NewReader(lines)), 1); err != nil {
		t.Fatal(err)
	}
	if last := o.last.Load(); last != 17 {
		t.Errorf("after %q the observer is at revision %d", lines, last)
	}
}
