package flights

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/worker"
)

// fleet is one worker and one coordinator over a bus in memory.
type fleet struct {
	t      *testing.T
	client *settle.Client
	worker *worker.Worker
	sent   int
}

func start(t *testing.T) *fleet {
	t.Helper()
	server := membus.NewServer(membus.Config{Partitions: 2})
	f := &fleet{t: t}
	var err error
	clientBus := server.Connect("client")
	if f.client, err = settle.NewClient(clientBus, settle.ClientConfig{ID: "test"}); err != nil {
		t.Fatal(err)
	}
	coordinatorBus := server.Connect("coordinator")
	c := coordinator.New(coordinatorBus, coordinator.Config{})
	c.Start()
	workerBus := server.Connect("worker")
	if f.worker, err = settle.StartWorker(t.Context(), workerBus, settle.WorkerConfig{ID: "w1", Programs: Programs}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.worker.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		c.Stop()
		f.client.Close()
		clientBus.Close()
		coordinatorBus.Close()
		workerBus.Close()
	})
	return f
}

// call sends an event and returns its receipt.
func (f *fleet) call(space, stream string, payload any) *model.Receipt {
	f.t.Helper()
	f.sent++
	r, err := f.client.Call(f.t.Context(), settle.Outgoing{Space: space, Stream: stream, ID: settle.ID(fmt.Sprint("e", f.sent)), Payload: payload})
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

func (f *fleet) depart(flight, from, to string, delay, distance int64) {
	f.t.Helper()
	r := f.call(from, StreamDeparture, Departure{Flight: flight, Delay: delay, Distance: distance, Destination: to})
	if want := `{"flight":"` + flight + `"}`; r.Outcome != model.Handled || r.Result.String() != want {
		f.t.Errorf("receipt is %s %v %s, want handled with %s", r.Outcome, r.Result, r.Error, want)
	}
}

// watch follows a document until the function until returns true, and returns a function that ends the watch.
// The document stays observed that long.
func (f *fleet) watch(space, doc string, until func(settle.Value) bool) (end func()) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(f.t.Context())
	reached, ended := make(chan struct{}), make(chan struct{})
	done := false
	go func() { // ends with ctx
		defer close(ended)
		for u, err := range f.client.Space(space).Watch(ctx, doc) {
			if err != nil {
				f.t.Error(err)
				return
			}
			if !done && until(u.Value) {
				done = true
				close(reached)
			}
		}
	}()
	<-reached
	return func() { cancel(); <-ended }
}

// await waits until a document has a JSON text, and leaves it observed until the
// test ends.
func (f *fleet) await(space, doc, want string) {
	f.t.Helper()
	f.t.Cleanup(f.watch(space, doc, func(v settle.Value) bool { return v.String() == want }))
}

func (f *fleet) get(space, doc string) string {
	f.t.Helper()
	v, _, err := f.client.Space(space).Get(f.t.Context(), doc)
	if err != nil {
		f.t.Fatal(err)
	}
	return v.String()
}

func (f *fleet) runs(space, node string) uint64 {
	return f.worker.Runs()[worker.RunKey{Space: space, Node: node}]
}

func TestAFlightCountsAtBothAirportsButItsDelayOnlyAtItsOrigin(t *testing.T) {
	f := start(t)
	f.depart("f1", "DTW", "LAS", 66, 1750)
	f.depart("f2", "DTW", "LAS", 14, 1750)
	f.await("LAS", DocStats, `{"arrivals":2,"delay_sum":0,"departures":0,"distance_sum":0,"on_time":0}`)
	if got, want := f.get("DTW", DocStats), `{"arrivals":0,"delay_sum":80,"departures":2,"distance_sum":3500,"on_time":1}`; got != want {
		t.Errorf("stats of the origin\n got %s\nwant %s", got, want)
	}
}

func TestAFlightMayReturnToItsOrigin(t *testing.T) {
	f := start(t)
	f.depart("f1", "LAS", "LAS", -3, 30)
	f.await("LAS", DocStats, `{"arrivals":1,"delay_sum":-3,"departures":1,"distance_sum":30,"on_time":1}`)
}

func TestABadPayloadFailsItsEventAndChangesNothing(t *testing.T) {
	f := start(t)
	for _, c := range []struct{ space, stream, payload, want string }{
		{"LAS", StreamDeparture, `null`, "payload of departure: null is here; an object is wanted"},
		{"LAS", StreamDeparture, `{"flight":"","delay":1,"distance":2,"destination":"OAK"}`, "payload of departure: it names no flight"},
		{"LAS", StreamDeparture, `{"flight":"f1","delay":1,"distance":2}`, `payload of departure: /destination: the field is missing`},
		{"LAS", StreamDeparture, `{"flight":"f1","delay":1,"distance":2,"destination":"L.S"}`, `flight f1: destination: airport "L.S": character '.' is not allowed`},
		{"LAS", StreamDeparture, `{"flight":"f1","delay":1,"distance":2,"destination":"nation"}`, "the space that ranks airports"},
		{"LAS", StreamDeparture, `{"flight":"f1","delay":1.5,"distance":2,"destination":"OAK"}`, "payload of departure: /delay: a number is here; an integer is wanted"},
		{"LAS", StreamDeparture, `{"flight":"f1","delay":1,"distance":-2,"destination":"OAK"}`, "flight f1: distance is -2; it must be a whole number of miles"},
		{"LAS", StreamArrival, `{"flight":7}`, "payload of arrival: /flight: an integer is here; a string is wanted"},
		{Nation, StreamConfigure, `{"airports":"LAS"}`, `payload of configure: /airports: a string is here; an array is wanted`},
		{Nation, StreamConfigure, `{"airports":["LAS","O K"]}`, `airport 2: airport "O K": character ' ' is not allowed`},
	} {
		r := f.call(c.space, c.stream, json.RawMessage(c.payload))
		if r.Outcome != model.Failed || !strings.Contains(r.Error, c.want) {
			t.Errorf("%s %s: receipt is %s %q, want failed with %q", c.stream, c.payload, r.Outcome, r.Error, c.want)
		}
	}
	if got := f.get("LAS", DocStats) + f.get(Nation, DocAirports); got != "absentabsent" {
		t.Errorf("something was written: %s", got)
	}
}

func TestPunctualityIsAbsentWithoutDepartures(t *testing.T) {
	f := start(t)
	f.depart("f1", "DTW", "LAS", 66, 1750)
	f.await("LAS", DocStats, `{"arrivals":1,"delay_sum":0,"departures":0,"distance_sum":0,"on_time":0}`)
	f.await("LAS", DocPunctuality, "absent")
}

func TestPunctualityIsComputedOnlyWhileSomebodyWatches(t *testing.T) {
	f := start(t)
	f.depart("f1", "DTW", "LAS", 20, 100)
	f.depart("f2", "OAK", "DTW", 20, 100)
	end := f.watch("DTW", DocPunctuality, func(v settle.Value) bool {
		return v.String() == `{"departures":1,"mean_delay":20,"on_time_share":0}`
	})
	f.depart("f3", "DTW", "LAS", 3, 100)
	f.await("DTW", DocPunctuality, `{"departures":2,"mean_delay":11.5,"on_time_share":0.5}`)
	end()
	for _, code := range []string{"OAK", "LAS"} {
		if n := f.runs(code, DocPunctuality); n != 0 {
			t.Errorf("%s: punctuality was computed %d times without a watch", code, n)
		}
	}
}

func TestAnArrivalDoesNotRecomputePunctuality(t *testing.T) {
	f := start(t)
	f.depart("f1", "DTW", "LAS", 20, 100)
	f.await("DTW", DocPunctuality, `{"departures":1,"mean_delay":20,"on_time_share":0}`)
	before := f.runs("DTW", DocPunctuality)
	f.depart("f2", "LAS", "DTW", 5, 100)
	f.await("DTW", DocStats, `{"arrivals":1,"delay_sum":20,"departures":1,"distance_sum":100,"on_time":0}`)
	if after := f.runs("DTW", DocPunctuality); after != before {
		t.Errorf("punctuality ran %d times more", after-before)
	}
}

func TestTheNationRanksByPunctualityThenCode(t *testing.T) {
	f := start(t)
	f.await(Nation, DocRanking, "absent")
	f.call(Nation, StreamConfigure, Configure{Airports: []string{"STL", "ORD", "ATL", "XNA"}})
	f.await(Nation, DocRanking, `[]`)
	f.depart("f1", "STL", "LAS", 0, 1)
	f.depart("f2", "STL", "LAS", 99, 1)
	f.depart("f3", "ORD", "LAS", 0, 1)
	f.depart("f4", "ATL", "LAS", 0, 1)
	f.depart("f5", "DEN", "LAS", 0, 1)
	f.await(Nation, DocRanking, `[{"airport":"ATL","on_time_share":1},{"airport":"ORD","on_time_share":1},{"airport":"STL","on_time_share":0.5}]`)
	if n := f.runs("DEN", DocPunctuality); n != 0 {
		t.Errorf("DEN is not ranked, but its punctuality was computed %d times", n)
	}
}

// TestTheProgramAgreesWithAPlainPass compares the program with the plain pass on real flights.
func TestTheProgramAgreesWithAPlainPass(t *testing.T) {
	all, err := BuiltIn()
	if err != nil {
		t.Fatal(err)
	}
	flights := all[:400]
	tally := Plain(flights)
	f := start(t)
	sender := f.client.Sender()
	for i := range flights {
		e := settle.Outgoing{Space: flights[i].Origin, Stream: StreamDeparture, ID: settle.ID(flights[i].ID), Payload: flights[i].Departure()}
		if err := sender.Send(t.Context(), e, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := sender.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, code := range tally.Codes() {
		want, err := settle.ValueOf(tally[code])
		if err != nil {
			t.Fatal(err)
		}
		f.await(code, DocStats, want.String())
	}
	busiest := tally.Busiest(10)
	f.call(Nation, StreamConfigure, Configure{Airports: busiest})
	ranking, err := settle.ValueOf(tally.Ranking(busiest))
	if err != nil {
		t.Fatal(err)
	}
	f.await(Nation, DocRanking, ranking.String())
	for _, code := range busiest {
		p, _ := tally.Punctuality(code)
		want, err := settle.ValueOf(p)
		if err != nil {
			t.Fatal(err)
		}
		f.await(code, DocPunctuality, want.String())
	}
}
