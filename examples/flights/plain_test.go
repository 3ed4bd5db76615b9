package flights

import (
	"reflect"
	"slices"
	"testing"
)

var four = []Flight{
	{Origin: "A", Destination: "B", Delay: 14, Distance: 100},
	{Origin: "A", Destination: "C", Delay: 15, Distance: 200},
	{Origin: "B", Destination: "A", Delay: -5, Distance: 100},
	{Origin: "B", Destination: "A", Delay: 30, Distance: 100},
}

func TestPlainCountsDelayAndDistanceOnceAtTheOrigin(t *testing.T) {
	want := Tally{
		"A": {Departures: 2, Arrivals: 2, DelaySum: 29, DistanceSum: 300, OnTime: 1},
		"B": {Departures: 2, Arrivals: 1, DelaySum: 25, DistanceSum: 200, OnTime: 1},
		"C": {Arrivals: 1},
	}
	got := Plain(four)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if total := got.Total(); total != (Stats{Departures: 4, Arrivals: 4, DelaySum: 54, DistanceSum: 500, OnTime: 2}) {
		t.Errorf("total is %+v", total)
	}
}

func TestBusiestCountsBothDirectionsAndBreaksTiesByCode(t *testing.T) {
	tally := Tally{"A": {Departures: 1}, "B": {Arrivals: 3}, "C": {Departures: 2, Arrivals: 1}, "D": {Departures: 2}}
	if got, want := tally.Busiest(3), []string{"B", "C", "D"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := tally.Busiest(10); len(got) != 4 {
		t.Errorf("of four airports, the ten busiest are %v", got)
	}
}

func TestPunctualityNeedsDepartures(t *testing.T) {
	tally := Plain(four)
	if p, ok := tally.Punctuality("A"); !ok || p != (Punctuality{Departures: 2, MeanDelay: 14.5, OnTimeShare: 0.5}) {
		t.Errorf("A: %+v, %v", p, ok)
	}
	if p, ok := tally.Punctuality("C"); ok {
		t.Errorf("C has no departures, but punctuality %+v", p)
	}
}

func TestRankingLeavesOutAirportsWithoutDepartures(t *testing.T) {
	got := Plain(four).Ranking([]string{"C", "B", "A"})
	if want := []Rank{{"A", 0.5}, {"B", 0.5}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
