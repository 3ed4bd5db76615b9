package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/receipts"
)

// Options configures a recording.
type Options struct {
	// From is the revision after which to start; 0 starts as early as log and lane allow.
	From uint64
	// Derived are derived documents beyond those known from saved observations.
	Derived []string
}

// page is the number of entries read at a time.
const page = 500

// recorder reads a space.
type recorder struct {
	Recording
	ctx     context.Context
	bus     port.Client
	sent    map[uint64]*model.Message // by lane sequence
	entries []model.LogEntry
	derived []string
	names   map[string]bool // of documents that were written
	at      map[[2]string]int
}

// Record records a space, which may continue to run.
func Record(ctx context.Context, bus port.Client, space string, o Options) (*Recording, error) {
	now, err := history.ReadContents(ctx, bus, space)
	switch {
	case err != nil:
		return nil, err
	case now.Seq == 0:
		return nil, fmt.Errorf("there is no space %s", space)
	case o.From > now.Seq:
		return nil, fmt.Errorf("revision %d: the last commit of space %s is at %d", o.From, space, now.Seq)
	}
	r := &recorder{
		Recording: Recording{Space: space, From: o.From, To: now.Seq}, ctx: ctx, bus: bus,
		sent: map[uint64]*model.Message{}, derived: append(slices.Clone(o.Derived), now.Derived...), names: map[string]bool{},
	}
	for _, name := range now.DocIDs() {
		r.names[name] = true
	}
	if err := r.readLog(); err != nil {
		return nil, err
	}
	if err := r.readLane(); err != nil {
		return nil, err
	}
	if err := r.begin(o.From); err != nil {
		return nil, err
	}
	for _, name := range now.DocIDs() {
		if r.isCell(name) {
			r.After = append(r.After, RecordedDocument{Name: name, Value: now.Doc(name).Value})
		}
	}
	return &r.Recording, nil
}

// isCell reports whether a document is compared: it belongs to the program, and is not derived.
func (r *recorder) isCell(name string) bool {
	return model.CheckName("document", name) == nil && !slices.Contains(r.derived, name)
}

func (r *recorder) readLog() error {
	return history.OverGaps(r.ctx, r.Space, func() error {
		r.entries = nil
		for after := uint64(0); ; {
			entries, err := r.bus.ReadLog(r.ctx, r.Space, after, page)
			if err != nil {
				return fmt.Errorf("read the log of space %s: %w", r.Space, err)
			}
			for i := range entries {
				if after = entries[i].Seq; after > r.To {
					return nil
				}
				if n := len(r.entries); n > 0 && entries[i].Prev != r.entries[n-1].Seq {
					r.entries = nil // the history before is incomplete
				}
				r.entries = append(r.entries, entries[i])
			}
			if len(entries) < page {
				return nil
			}
		}
	})
}

func (r *recorder) readLane() error {
	for after := uint64(0); ; {
		events, err := r.bus.ReadLane(r.ctx, r.Space, after, page)
		if err != nil {
			return fmt.Errorf("read the lane of space %s: %w", r.Space, err)
		}
		for i := range events {
			after = events[i].Seq
			r.sent[after] = &events[i]
		}
		if len(events) < page {
			return nil
		}
	}
}

// begin finds the first revision after which everything is known, and takes what follows it. A
// later start that was asked for must be possible.
func (r *recorder) begin(wish uint64) error {
	if len(r.entries) == 0 {
		return fmt.Errorf("the log of space %s was purged up to its last commit, so there is nothing to replay (--history-bytes keeps more)", r.Space)
	}
	first := r.entries[0].Prev
	for i := range r.entries {
		if err := r.take(&r.entries[i], true); errors.Is(err, errForgotten) {
			first = r.entries[i].Seq
		} else if err != nil {
			return err
		}
	}
	for tries := 0; ; tries++ {
		if wish != 0 && wish < first {
			return fmt.Errorf("the history of space %s after revision %d is incomplete: log and lane have all of it from revision %d on; use --from %d, or omit it", r.Space, wish, first, first)
		}
		r.From = max(wish, first)
		err := r.before()
		if past, is := errors.AsType[*history.PastError](err); is && past.From > first && tries < len(r.names) {
			first = past.From
			continue
		}
		if err != nil {
			return err
		}
		return r.steps()
	}
}

// before reads the documents as of From.
func (r *recorder) before() error {
	r.Before = nil
	if r.From == 0 {
		return nil
	}
	for name := range r.names { // any order: sorted below
		if !r.isCell(name) {
			continue
		}
		d, err := history.ReadAt(r.ctx, r.bus, r.Space, name, r.From)
		if err != nil {
			return err
		}
		if !d.Value.IsAbsent() {
			r.Before = append(r.Before, RecordedDocument{Name: name, Value: d.Value})
		}
	}
	slices.SortFunc(r.Before, func(a, b RecordedDocument) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// steps processes the commits after From.
func (r *recorder) steps() error {
	r.Steps, r.at = nil, map[[2]string]int{}
	for i := range r.entries {
		if r.entries[i].Seq <= r.From {
			continue
		}
		if err := r.take(&r.entries[i], false); err != nil {
			return err
		}
	}
	r.Start, r.End = r.entries[len(r.entries)-1].Stored.UTC(), r.entries[len(r.entries)-1].Stored.UTC()
	for i := range r.Steps {
		if i > 0 && r.Steps[i].At.Before(r.Steps[i-1].At) {
			r.Steps[i].At = r.Steps[i-1].At // a server's clock was set back
		}
		r.End = later(r.End, r.Steps[i].At)
	}
	if len(r.Steps) > 0 {
		r.Start = r.Steps[0].At
	}
	return nil
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// errForgotten reports that an event which a commit handled is no longer in the lane.
var errForgotten = errors.New("the event is no longer in the lane")

// take processes a commit; with only, it collects the names of documents, and checks that its
// events are known.
func (r *recorder) take(e *model.LogEntry, only bool) error {
	c, err := model.DecodeCommit(e.Data)
	if err != nil {
		return fmt.Errorf("log of space %s, sequence %d: %w", e.Space, e.Seq, err)
	}
	for i := range c.Txs {
		tx := &c.Txs[i]
		for j := range tx.Writes {
			r.names[tx.Writes[j].Doc] = true
			if only && strings.HasPrefix(tx.By, "compute ") {
				r.derived = append(r.derived, tx.Writes[j].Doc)
			}
		}
		for _, seq := range lanes(tx) {
			if r.sent[seq] == nil {
				return fmt.Errorf("log of space %s, sequence %d: %w", e.Space, e.Seq, errForgotten)
			}
		}
		if !only {
			r.step(e.Stored.UTC(), tx)
		}
	}
	return nil
}

// lanes returns the lane sequences of the event that a transaction is about, if it came through the
// lane.
func lanes(tx *model.Tx) (all []uint64) {
	if tx.Later != nil && tx.Later.Lane > 0 {
		all = append(all, tx.Later.Lane)
	}
	if tx.Receipt != nil && tx.Receipt.Lane > 0 {
		all = append(all, tx.Receipt.Lane)
	}
	return all
}

// step records what a transaction shows: that an event arrived, how one ended, or writes without an
// event.
func (r *recorder) step(at time.Time, tx *model.Tx) {
	for _, seq := range lanes(tx) {
		m := r.sent[seq]
		key := [2]string{m.Stream, m.ID}
		if _, seen := r.at[key]; seen {
			continue
		}
		s := RecordedStep{At: at, Stream: m.Stream, Event: m.ID, NotBefore: m.NotBefore, Invalid: m.Invalid}
		if payload, err := model.ParseValue(m.Payload); err == nil {
			s.Payload = payload
		} else if len(m.Payload) > 0 {
			s.Invalid = "its payload is not JSON: " + err.Error()
		}
		r.at[key] = len(r.Steps)
		r.Steps = append(r.Steps, s)
	}
	if rc := tx.Receipt; rc != nil {
		stream, _ := receipts.Stream(tx.By)
		if i, known := r.at[[2]string{stream, rc.Event}]; known {
			s := &r.Steps[i]
			s.Outcome, s.Result, s.Error, s.Code = rc.Outcome, rc.Result, rc.Error, rc.Code
		}
		return
	}
	if tx.Later != nil || ownWrites(tx.By) {
		return
	}
	if _, is := model.EndOf(tx.By); is {
		r.end(at, tx)
		return
	}
	s := RecordedStep{At: at}
	for i := range tx.Writes {
		if r.isCell(tx.Writes[i].Doc) {
			s.Writes = append(s.Writes, tx.Writes[i])
		}
	}
	if len(s.Writes) > 0 {
		r.Steps = append(r.Steps, s)
	}
}

// end records the ends of tasks that the owner has reported: in a replay nothing performs them, so they are events from
// outside.
func (r *recorder) end(at time.Time, tx *model.Tx) {
	for i := range tx.Sends {
		m := &tx.Sends[i]
		r.at[[2]string{m.Stream, m.ID}] = len(r.Steps)
		r.Steps = append(r.Steps, RecordedStep{At: at, Stream: m.Stream, Event: model.NameOf(m.ID), Payload: m.Payload})
	}
}

// ownWrites reports whether the program itself wrote, as it will again in a replay.
func ownWrites(by string) bool {
	if by == "cron" {
		return true
	}
	for _, kind := range []string{"handle ", "compute ", "effect "} {
		if strings.HasPrefix(by, kind) {
			return true
		}
	}
	return false
}
