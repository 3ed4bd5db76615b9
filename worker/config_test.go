package worker

import (
	"math"
	"strings"
	"testing"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker/host"
)

func noPrograms(string) (*space.Program, error) { return nil, nil }

// An error names the worker, the option, its value and a valid range.
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
		"CheckRuns is -1":          {Budgets: space.Budgets{CheckRuns: -1}},
		"BackoffMin is -1ns":       {Budgets: space.Budgets{BackoffMin: -1}},
		"BackoffMax is -1ns":       {Budgets: space.Budgets{BackoffMax: -1}},
	} {
		_, err := New(nil, Config{ID: "w", Programs: noPrograms, Options: o})
		if err == nil || !strings.HasPrefix(err.Error(), "worker w: "+name) || !strings.Contains(err.Error(), "; use ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The worker passes its options on to its spaces.
func TestOptions_ArePassedToTheSpaces(t *testing.T) {
	limits := ledger.Limits{MaxCommitBytes: 40 << 10, MaxGroup: 7, RetryMax: 3}
	e, _ := newEngine(&Config{Options: Options{Budgets: space.Budgets{RunBudget: 3}}})
	c := &core{engine: e, of: &host.Access{Limits: limits, Code: &host.Code{}}}
	if got := c.settings(); got.Limits != limits || got.RunBudget != 3 {
		t.Errorf("the core has %+v and %+v", got.Limits, got.Budgets)
	}
}

// Saved observations of nodes without a version are valid for one version of a hosted program, in one
// executable.
func TestBuild_IsOfTheExecutableAndTheVersion(t *testing.T) {
	if buildOf("exe", "v1") == buildOf("exe", "v2") || buildOf("exe", "v1") == buildOf("other", "v1") {
		t.Error("equal code has different builds, or different code one build")
	}
	if got := buildOf("", "v1"); got != "" {
		t.Errorf("the build is %s without an executable", got)
	}
}
