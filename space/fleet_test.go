package space

import (
	"math"
	"testing"
)

func TestFleet_OnlySensibleLimitsAreAccepted(t *testing.T) {
	t.Parallel()
	for _, f := range []Fleet{
		{AtATime: -1}, {AtATime: MaxFleet + 1}, {PerSecond: -1}, {PerSecond: math.NaN()}, {PerSecond: math.Inf(1)}, {PerSecond: minPerSecond / 2}, {By: "host"},
	} {
		if f.Check() == nil {
			t.Errorf("%+v is accepted", f)
		}
	}
	for _, f := range []Fleet{{}, {AtATime: 1}, {PerSecond: minPerSecond}, {AtATime: MaxFleet, PerSecond: MaxFleet, By: "host"}} {
		if err := f.Check(); err != nil {
			t.Errorf("%+v: %v", f, err)
		}
	}
}
