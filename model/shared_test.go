package model

import (
	"errors"
	"sync"
	"testing"
)

// The copies of a shared entry have one commit, or one error; other entries are decoded by each reader.
func TestLogEntry_SharedIsDecodedOnce(t *testing.T) {
	data := AppendCommit(nil, &Commit{Version: CommitVersion, Space: "s", Runtime: "w1", Epoch: 3, Attempt: 4}, nil)
	e := LogEntry{Space: "s", Seq: 7, Data: data}
	shared := e.Shared(sync.OnceValues)
	copied := shared
	first, err := shared.Commit()
	if err != nil {
		t.Fatal(err)
	}
	if second, _ := copied.Commit(); second != first {
		t.Error("a copy has another commit")
	}
	if own, _ := e.Commit(); own == first {
		t.Error("an entry that is not shared has the commit of the shared one")
	}
	broken := LogEntry{Space: "s", Seq: 2, Data: []byte("{")}.Shared(sync.OnceValues)
	_, first1 := broken.Commit()
	if _, again := broken.Commit(); first1 == nil || !errors.Is(again, first1) {
		t.Errorf("%v, then %v", first1, again)
	}
}
