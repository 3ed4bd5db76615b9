package worker

import (
	"math"
	"strings"
	"testing"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/space"
)

func noPrograms(string) (*space.Program, error) { return nil, nil }

// An error names the worker, the option, what it is and what to use.
func TestOptions_InvalidOnesAreRefused(t *testing.T) {
	for name, o := range map[string]Options{
		"Weight is -1":             {Weight: -1},
		"Weight is NaN":            {Weight: math.NaN()},
		"Weight is +Inf":           {Weight: math.Inf(1)},
		"Heartbeat is -1ns":        {Heartbeat: -1},
		"MemberTTL is -1ns":        {MemberTTL: -1},
		"Handover is -1ns":         {Handover: -1},
		"Checkpoint is -1ns":       {Checkpoint: -1},
		"Aside is -1ns":            {Aside: -1},
		"History is -1ns":          {History: -1},
		"PurgeDelay is -1ns":       {PurgeDelay: -1},
		"BacklogBytes is -1":       {BacklogBytes: -1},
		"Performing is -1":         {Performing: -1},
		"MaxCommitBytes is 1024":   {Limits: ledger.Limits{MaxCommitBytes: 1024}},
		"MaxGroup is -1":           {Limits: ledger.Limits{MaxGroup: -1}},
		"LaneLimit is -1":          {Limits: ledger.Limits{LaneLimit: -1}},
		"MaxLater is -1":           {Limits: ledger.Limits{MaxLater: -1}},
		"RetryMin is -1ns":         {Limits: ledger.Limits{RetryMin: -1}},
		"RetryMax is -1ns":         {Limits: ledger.Limits{RetryMax: -1}},
		"MaxIterations is -1":      {Budgets: space.Budgets{MaxIterations: -1}},
		"RunBudget is 251; use 1 ": {Budgets: space.Budgets{RunBudget: 251}},
		"BackoffMin is -1ns":       {Budgets: space.Budgets{BackoffMin: -1}},
		"BackoffMax is -1ns":       {Budgets: space.Budgets{BackoffMax: -1}},
	} {
		_, err := New(nil, Config{ID: "w", Programs: noPrograms, Options: o})
		if err == nil || !strings.HasPrefix(err.Error(), "worker w: "+name) || !strings.Contains(err.Error(), "; use ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// payload is a bus of which a host knows the largest message only.
type payload struct {
	Bus
	most int
}

func (p payload) MaxPayload() int { return p.most }

// The options of the worker are those of its spaces, and a commit takes half of max_payload at most.
func TestOptions_AreThoseOfTheSpaces(t *testing.T) {
	for set, want := range map[int]int{0: 128 << 10, 40 << 10: 40 << 10, 1 << 20: 128 << 10} {
		h := newTestHost(t, 0)
		h.env.bus = payload{most: 256 << 10}
		h.env.cfg.Limits = ledger.Limits{MaxCommitBytes: set, MaxGroup: 7, RetryMax: 3}
		h.env.cfg.Budgets = space.Budgets{RunBudget: 3}
		got := h.settings()
		if got.MaxCommitBytes != want || got.MaxGroup != 7 || got.RetryMax != 3 || got.RunBudget != 3 {
			t.Errorf("with MaxCommitBytes %d, the core has %+v and %+v", set, got.Limits, got.Budgets)
		}
	}
}
