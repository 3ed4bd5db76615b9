package buscontract

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/settlehq/settle/model"
)

var recordChecks = []check{
	{"a record is loaded as it was saved and none is revision 0", loadRecord},
	{"a record is saved over the revision that it names and over no other", saveRecordOver},
	{"saving a record as it is already is a success", saveRecordTwice},
	{"a record is saved once whichever request or acknowledgement is lost", recordFaults},
	{"a record that another client has replaced is outdated in doubt, too", recordInDoubt},
	{"records are listed by key and only those below a key", listRecords},
	{"a follower gets every record below a key then ready then new ones", followRecords},
	{"a follower of records continues after a disconnection", recordsAfterDisconnection},
	{"a record that is too large is refused", recordTooLarge},
	{"an invalid key is refused before a request is sent", badRecordKeys},
}

func (w *world) saveRecord(c Client, key, data string, rev uint64) uint64 {
	w.Helper()
	rev, err := c.SaveRecord(w.ctx, model.Record{Key: key, Data: []byte(data), Rev: rev})
	w.must(err)
	return rev
}

func (w *world) wantRecord(c Client, key, data string, rev uint64) {
	w.Helper()
	r, err := c.LoadRecord(w.ctx, key)
	w.must(err)
	w.equal("record "+key, fmt.Sprintf("%s %q %d", r.Key, r.Data, r.Rev), fmt.Sprintf("%s %q %d", key, data, rev))
	if (rev != 0) == r.Stored.IsZero() {
		w.Fatalf("record %s: stored at %v", key, r.Stored)
	}
}

func loadRecord(w *world) {
	c := w.connect("a")
	w.wantRecord(c, "rule.all", "", 0)
	rev := w.saveRecord(c, "rule.all", "x", 0)
	w.wantRecord(w.connect("b"), "rule.all", "x", rev)
}

func saveRecordOver(w *world) {
	c := w.connect("a")
	first := w.saveRecord(c, "rule.all", "1", 0)
	second := w.saveRecord(c, "rule.all", "2", first)
	if second <= first {
		w.Fatalf("revision %d after %d", second, first)
	}
	for _, stale := range []uint64{0, first, second + 1} {
		_, err := c.SaveRecord(w.ctx, model.Record{Key: "rule.all", Data: []byte("3"), Rev: stale})
		if !errors.Is(err, model.ErrOutdated) {
			w.Errorf("saved over revision %d: %v, want %v", stale, err, model.ErrOutdated)
		}
	}
	w.wantRecord(c, "rule.all", "2", second)
}

func saveRecordTwice(w *world) {
	c := w.connect("a")
	rev := w.saveRecord(c, "version.p.1", "x", 0)
	w.equal("revision", w.saveRecord(w.connect("b"), "version.p.1", "x", 0), rev)
}

func recordFaults(w *world) {
	for i, fault := range faults {
		c := w.connect(fmt.Sprintf("c%d", i))
		w.inject(c, Record, fault)
		key := fmt.Sprintf("rule.space.s%d", i)
		rev := w.saveRecord(c, key, "x", 0)
		w.wantRecord(c, key, "x", rev)
	}
}

func recordInDoubt(w *world) {
	c, other := w.connect("a"), w.connect("b")
	between := w.holdAfter(c, Record, DropAck)
	saved := make(chan error, 1)
	go func() { // ends with the request
		_, err := c.SaveRecord(w.ctx, model.Record{Key: "rule.all", Data: []byte("mine")})
		saved <- err
	}()
	between.await()
	mine, err := other.LoadRecord(w.ctx, "rule.all")
	w.must(err)
	rev := w.saveRecord(other, "rule.all", "theirs", mine.Rev)
	between.over()
	if err := <-saved; !errors.Is(err, model.ErrOutdated) {
		w.Errorf("%v, want %v", err, model.ErrOutdated)
	}
	w.wantRecord(c, "rule.all", "theirs", rev)
}

func keysOf(records []model.Record) (keys []string) {
	for _, r := range records {
		keys = append(keys, r.Key)
	}
	return keys
}

func listRecords(w *world) {
	c := w.connect("a")
	none, err := c.ListRecords(w.ctx, "rule")
	w.must(err)
	w.equal("records", len(none), 0)
	for _, key := range []string{"rule.space.b", "rule.all", "rules.all", "version.p.1", "rule.space.a"} {
		w.saveRecord(c, key, key, 0)
	}
	found, err := c.ListRecords(w.ctx, "rule")
	w.must(err)
	w.equal("records", keysOf(found), []string{"rule.all", "rule.space.a", "rule.space.b"})
	w.equal("data", string(found[0].Data), "rule.all")
}

// readyRecording records records, and when the follower was ready.
type readyRecording struct {
	*recording[model.Record]
	ready  chan struct{}
	before atomic.Int64
}

func recordRecords(w *world, c Client, under string) *readyRecording {
	f := &readyRecording{ready: make(chan struct{})}
	var delivered atomic.Int64
	f.recording = record(w, func(ctx context.Context, deliver func(model.Record)) error {
		return c.FollowRecords(ctx, under, func(r model.Record) {
			delivered.Add(1)
			deliver(r)
		}, func() {
			f.before.Store(delivered.Load())
			close(f.ready)
		})
	})
	return f
}

func followRecords(w *world) {
	c := w.connect("a")
	nobody := recordRecords(w, w.connect("b"), "rule")
	w.await("readiness", nobody.ready)
	first := w.saveRecord(c, "rule.all", "1", 0)
	w.equal("live record", nobody.next().Rev, first)
	w.saveRecord(c, "version.p.1", "v", 0)
	w.saveRecord(c, "rule.space.s", "s", 0)
	w.equal("live record", nobody.next().Key, "rule.space.s")
	second := w.saveRecord(c, "rule.all", "2", first)
	w.equal("live record", nobody.next().Rev, second)

	late := recordRecords(w, w.connect("c"), "rule")
	w.await("readiness", late.ready)
	w.equal("records before ready", late.before.Load(), int64(2))
	w.equal("keys", keysOf(late.take(2)), []string{"rule.space.s", "rule.all"})
	w.saveRecord(c, "rule.space.t", "t", 0)
	w.equal("what is new", keysOf(late.take(1)), []string{"rule.space.t"})
}

func recordsAfterDisconnection(w *world) {
	c := w.connect("a")
	f := recordRecords(w, w.connect("b"), "rule")
	w.await("readiness", f.ready)
	for i := range 3 {
		w.Disconnect(w.T)
		w.Reconnect(w.T)
		key := fmt.Sprintf("rule.space.s%d", i)
		w.saveRecord(c, key, "x", 0)
		w.equal("record", f.next().Key, key)
	}
}

func recordTooLarge(w *world) {
	c := w.connect("a")
	_, err := c.SaveRecord(w.ctx, model.Record{Key: "version.p.1", Data: bytes.Repeat([]byte("x"), c.MaxPayload()+1)})
	if !errors.Is(err, model.ErrTooLarge) {
		w.Errorf("%v, want %v", err, model.ErrTooLarge)
	}
	w.wantRecord(c, "version.p.1", "", 0)
}

func badRecordKeys(w *world) {
	c := w.connect("a")
	for _, key := range []string{"", ".", "a.", "a..b", "a.*", ">", "a b"} {
		_, saved := c.SaveRecord(w.ctx, model.Record{Key: key, Data: []byte("x")})
		_, loaded := c.LoadRecord(w.ctx, key)
		_, listed := c.ListRecords(w.ctx, key)
		followed := c.FollowRecords(w.ctx, key, func(model.Record) {}, func() {})
		for _, err := range []error{saved, loaded, listed, followed} {
			if name := (*model.NameError)(nil); !errors.As(err, &name) {
				w.Errorf("key %q: %v", key, err)
			}
		}
	}
}
