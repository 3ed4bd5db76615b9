package model_test

import (
	"testing"

	"github.com/settlehq/settle/model"
)

// After a store has gone back, a sequence is given out again: what an operator has decided about a commit does not apply
// to another one of the same sequence.
func TestQuarantined_ADecisionIsAboutTheBytesThatTheOperatorHasSeen(t *testing.T) {
	bad := &model.LogEntry{Space: "s", Seq: 7, Data: []byte("cannot be read")}
	q := &model.Quarantined{Version: model.QuarantineVersion, Seq: bad.Seq, Sum: model.SumOf(bad.Data), Decision: model.Skipped}
	if !q.IsOf(bad) {
		t.Error("the decision does not apply to the commit that it is about")
	}
	for what, e := range map[string]*model.LogEntry{
		"another commit of the sequence": {Space: "s", Seq: 7, Data: []byte("can be read")},
		"another sequence":               {Space: "s", Seq: 8, Data: bad.Data},
	} {
		if c, err := q.Substitute(e); err != nil || c != nil {
			t.Errorf("%s is replaced by %v, %v", what, c, err)
		}
	}
	q.Decision = ""
	if c, err := q.Substitute(bad); err != nil || c != nil {
		t.Errorf("without a decision it is replaced by %v, %v", c, err)
	}
}
