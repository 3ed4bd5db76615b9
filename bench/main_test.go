package main

import (
	"io"
	"testing"
)

// A count that has grown by more than a tenth fails; a smaller one, and one that cannot be counted here, does not.
func TestSmall_ACountThatHasGrownFails(t *testing.T) {
	was := counts{"work": {"in_msgs": 2, "fsyncs": 2}}
	for _, c := range []struct {
		is    map[string]float64
		fails bool
	}{
		{map[string]float64{"in_msgs": 2, "fsyncs": 2}, false},
		{map[string]float64{"in_msgs": 2.2, "fsyncs": 2}, false},
		{map[string]float64{"in_msgs": 2.4, "fsyncs": 2}, true},
		{map[string]float64{"in_msgs": 1}, false},
		{map[string]float64{"in_msgs": 2, "fsyncs": 3}, true},
	} {
		if err := compare(io.Discard, was, counts{"work": c.is}); (err != nil) != c.fails {
			t.Errorf("%v: %v", c.is, err)
		}
	}
}
