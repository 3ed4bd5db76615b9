package coordinator

import (
	"testing"

	"github.com/settlehq/settle/model"
)

// A commit is read if and only if a coordinator has to do something about it, whether it was appended with a note of that or, by an earlier
// version, without one.
func TestRelevant_IsEveryCommitThatACoordinatorActsOn(t *testing.T) {
	t.Parallel()
	with := func(tx model.Tx) *model.Commit {
		return &model.Commit{Version: model.CommitVersion, Space: "s", Runtime: "w", Txs: []model.Tx{{N: 1, By: "handle add"}, tx}}
	}
	cases := []struct {
		what  string
		c     *model.Commit
		reads bool
		// unsure reports that a commit without a note is read although nothing follows from it.
		unsure bool
	}{
		{what: "a takeover", c: &model.Commit{Version: model.CommitVersion, Space: "s", Runtime: "w", Takeover: true}},
		{what: "a write", c: with(model.Tx{N: 2, By: "x", Writes: []model.Write{{Doc: "d", Value: model.String(`"snd":[ "o":"failed"`)}}})},
		{what: "a send to itself", c: with(model.Tx{N: 2, By: "x", Sends: []model.Send{{ID: "i", To: "s", Stream: "a"}}}), unsure: true},
		{what: "a send", c: with(model.Tx{N: 2, By: "x", Sends: []model.Send{{ID: "i", To: "t", Stream: "a", Position: 1}}}), reads: true},
	}
	for _, o := range model.Outcomes {
		cases = append(cases, struct {
			what   string
			c      *model.Commit
			reads  bool
			unsure bool
		}{what: string(o), c: with(model.Tx{N: 2, By: "handle add", Receipt: &model.Receipt{Event: "e", Outcome: o}}), reads: o != model.Handled})
	}
	for _, c := range cases {
		noted := model.LogEntry{Space: "s", Data: model.AppendCommit(nil, c.c, nil), Inert: c.c.IsInert()}
		if relevant(&noted) != c.reads {
			t.Errorf("%s is read: %v, want %v", c.what, !c.reads, c.reads)
		}
		earlier := noted
		earlier.Inert = false
		if relevant(&earlier) != (c.reads || c.unsure) {
			t.Errorf("%s without a note is read: %v", c.what, relevant(&earlier))
		}
	}
}
