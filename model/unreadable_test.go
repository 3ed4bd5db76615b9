package model

import (
	"errors"
	"strings"
	"testing"
)

// A commit must belong to the space in whose log it is, and to the author that its id names.
func TestLogEntry_ACommitMustFitItsPlace(t *testing.T) {
	c := &Commit{Version: CommitVersion, Space: "s", Runtime: "w1", Epoch: 3, Attempt: 4}
	data := AppendCommit(nil, c, nil)
	for _, test := range []struct {
		e    LogEntry
		want string
	}{
		{LogEntry{Space: "s", Seq: 7, ID: "w1/3/4/nonce", Data: data}, ""},
		{LogEntry{Space: "s", Seq: 7, ID: "w1/3/4", Data: data}, ""},
		{LogEntry{Space: "s", Seq: 7, Data: data}, ""},
		{LogEntry{Space: "t", Seq: 7, ID: "w1/3/4/nonce", Data: data}, "log of space t, sequence 7: it is a commit of space"},
		{LogEntry{Space: "s", Seq: 7, ID: "w2/3/4/nonce", Data: data}, "it was appended as"},
		{LogEntry{Space: "s", Seq: 7, ID: "w1/3/5/nonce", Data: data}, "it was appended as"},
		{LogEntry{Space: "s", Seq: 7, ID: "w1/3/44/nonce", Data: data}, "it was appended as"},
		{LogEntry{Space: "s", Seq: 7, ID: "w1/3/4/nonce", Data: []byte("{}")}, "log of space s, sequence 7: decode commit"},
	} {
		_, err := test.e.Commit()
		unreadable, is := errors.AsType[*UnreadableError](err)
		if test.want == "" && err != nil || test.want != "" && (!is || unreadable.Seq != 7 || !strings.HasPrefix(err.Error(), test.want) && !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s of %s: %v, want %q", test.e.ID, test.e.Space, err, test.want)
		}
	}
}
