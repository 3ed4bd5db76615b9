package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/model"
)

const (
	// fewDead is the number of messages that the totals may lack before a coordinator counts them,
	// and manyDead the number that a reader counts itself. A reader of more lists all subjects.
	fewDead, manyDead = 256, 4 * wire.PageLimit
	// recount is the shortest time between two counts from the first message on.
	recount = 10 * time.Minute
	// savedEvery is the number of messages after which a long count is saved.
	savedEvery = 32 * wire.PageLimit
)

// errNotTheSame reports that the totals are of another store than the present one, or that messages were
// removed from it.
var errNotTheSame = errors.New("the counted dead letters are not the present ones")

// errBehind reports that the end of the dead letters could not be read: a replica does not have it yet,
// or the last ones were removed.
var errBehind = errors.New("the last dead letters cannot be read")

// errManyDead reports that there is too much to be counted at once.
var errManyDead = errors.New("too many dead letters are not counted yet")

// CountDead counts the dead letters of a space and a stream, "" for any. See port.DeadCounter.
func (dl *deadLetters) CountDead(ctx context.Context, space, stream string) (model.DeadCounts, error) {
	if err := errors.Join(checkIfAny("space", space), checkIfAny("stream", stream)); err != nil {
		return model.DeadCounts{}, err
	}
	counted, err := dl.countDead(ctx)
	if err == nil {
		if c, kept := counted.totals.Of(space, stream); kept {
			return c, nil
		}
	} else if !uncounted(err) {
		return model.DeadCounts{}, fmt.Errorf("count dead letters: %w", err)
	}
	names, err := dl.ListDead(ctx, space)
	return model.NewDeadIndex(names).Count(func(n model.DeadName) bool { return stream == "" || n.Stream == stream }), err
}

// DeadOverview are the figures of all dead letters.
type DeadOverview struct {
	Counts model.DeadCounts
	// Stream is the stream with most open letters, and OfStream their number.
	Stream   string
	OfStream int
	// Index covers all letters if they had to be listed or are few; otherwise it is nil.
	Index model.DeadIndex
}

// OverviewDead counts all dead letters, from the totals where there are any.
func (dl *deadLetters) OverviewDead(ctx context.Context) (*DeadOverview, error) {
	counted, err := dl.countDead(ctx)
	if err == nil {
		o := &DeadOverview{Counts: counted.totals.All, Index: counted.names}
		o.Stream, o.OfStream = counted.totals.MostOpen()
		return o, nil
	}
	if !uncounted(err) {
		return nil, err
	}
	names, err := dl.ListDead(ctx, "")
	if err != nil {
		return nil, err
	}
	index := model.NewDeadIndex(names)
	o := &DeadOverview{Counts: index.Count(func(model.DeadName) bool { return true }), Index: index}
	o.Stream, o.OfStream = mostOpen(names, index)
	return o, nil
}

// uncounted reports whether totals are unavailable although the letters can be read: then all must be listed.
func uncounted(err error) bool {
	return errors.Is(err, errNotTheSame) || errors.Is(err, errBehind) || errors.Is(err, errManyDead) || errors.Is(err, wire.ErrNoStream)
}

// countDead counts all letters: the stored totals, and what was stored since.
func (dl *deadLetters) countDead(ctx context.Context) (*deadCount, error) {
	kept, _, err := dl.keptTotals(ctx)
	if err != nil {
		return nil, err
	}
	info, err := dl.StreamInfo(ctx, dl.Names.DeadStream())
	if err != nil {
		return nil, err
	}
	if info.State.LastSeq > kept.Seq+manyDead {
		return nil, errManyDead
	}
	c := newDeadCount(dl, kept, info.State)
	for pages := 0; !c.done; pages++ {
		if pages > manyDead/wire.PageLimit { // they are large
			return nil, errManyDead
		}
		if err := c.page(ctx); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// keptTotals returns those that a coordinator has stored, and their revision; empty ones if none has.
func (dl *deadLetters) keptTotals(ctx context.Context) (*model.DeadTotals, uint64, error) {
	r, err := dl.LoadRecord(ctx, wire.DeadTotalsKey)
	if err != nil {
		return nil, 0, err
	}
	var t model.DeadTotals
	if r.Data != nil && json.Unmarshal(r.Data, &t) != nil {
		return &model.DeadTotals{}, r.Rev, nil
	}
	return &t, r.Rev, nil
}

// deadCount counts the messages that a stream of dead letters had in a state.
type deadCount struct {
	letters *deadLetters
	totals  *model.DeadTotals
	state   jetstream.StreamState
	done    bool
	// names are all that were counted, nil if they are not known or are many.
	names model.DeadIndex
}

func newDeadCount(letters *deadLetters, from *model.DeadTotals, s jetstream.StreamState) *deadCount {
	c := &deadCount{letters: letters, totals: from, state: s}
	if from.Seq == 0 {
		c.names = model.DeadIndex{}
	}
	return c
}

// page counts the next messages. They are read from the last one on that is counted, which shows
// whether that is what it was. The error is errNotTheSame if it is not, or if there are fewer
// messages than were counted.
func (c *deadCount) page(ctx context.Context) error {
	t, end := c.totals, c.state.LastSeq
	var found []wire.StoredMsg
	if end > 0 {
		var err error
		found, _, err = c.letters.BatchGet(ctx, c.letters.Names.DeadStream(), wire.GetRequest{Seq: max(t.Seq, 1), Batch: wire.PageLimit + 1, MaxBytes: wire.PageBytes})
		if err != nil {
			return err
		}
	}
	if t.Seq > 0 {
		if !isLastOf(t, found) {
			return errNotTheSame
		}
		found = found[1:]
	}
	if behind := slices.IndexFunc(found, func(m wire.StoredMsg) bool { return m.Seq > end }); behind >= 0 {
		found = found[:behind]
	}
	if len(found) > 0 {
		if err := c.add(ctx, found); err != nil {
			return err
		}
	}
	all := c.totals.Messages == c.state.Msgs
	c.done = all && (c.totals.Seq >= end || len(found) == 0) // the last ones may have been removed
	switch {
	case c.done:
		return nil
	case c.totals.Seq >= end:
		return errNotTheSame
	case len(found) == 0:
		return errBehind
	}
	return nil
}

// isLastOf reports whether messages begin with the last one that is counted.
func isLastOf(t *model.DeadTotals, found []wire.StoredMsg) bool {
	return len(found) > 0 && found[0].Seq == t.Seq && found[0].Time.Equal(t.Stored)
}

// add counts messages.
func (c *deadCount) add(ctx context.Context, found []wire.StoredMsg) error {
	names := make([]model.DeadName, 0, len(found))
	for i := range found {
		if n, is := c.letters.deadName(found[i].Subject); is {
			names = append(names, n)
		}
	}
	t := c.totals.Clone()
	before, err := c.before(ctx, names)
	if err != nil {
		return err
	}
	t.Add(names, before)
	last := found[len(found)-1]
	t.Seq, t.Stored = last.Seq, last.Time.UTC()
	t.Messages += uint64(len(found))
	c.totals = t
	if c.names != nil {
		for _, n := range names {
			c.names[n] = true
		}
		if len(c.names) > manyDead {
			c.names = nil
		}
	}
	return nil
}

// before determines which letters and notes with these names are counted already.
func (c *deadCount) before(ctx context.Context, names []model.DeadName) (model.DeadIndex, error) {
	if c.names != nil {
		return c.names, nil
	}
	fresh := model.NewDeadIndex(names)
	_, all := model.DeadTouched(names)
	var subjects []string
	for _, n := range all {
		if !fresh[n] && n.Check() == nil {
			subjects = append(subjects, c.letters.Names.Dead(n.Space, n.Stream, n.Event))
		}
	}
	before := model.DeadIndex{}
	for part := range slices.Chunk(subjects, getDeadAtOnce) {
		found, err := c.letters.ReadNamed(ctx, c.letters.Names.DeadStream(), part)
		if err != nil {
			return nil, err
		}
		for i := range found {
			if n, is := c.letters.deadName(found[i].Subject); is && found[i].Seq <= c.totals.Seq {
				before[n] = true
			}
		}
	}
	return before, nil
}

// deadName reads the name of a letter or a note off its subject.
func (dl *deadLetters) deadName(subject string) (model.DeadName, bool) {
	m, ok := dl.Names.ParseDead(subject)
	return model.DeadName{Space: m.Space, Stream: m.Stream, Event: m.ID}, ok
}

// KeepDeadTotals counts what was stored since the totals were, if it is some hundred messages, and
// stores them. See port.DeadCounter.
func (dl *deadLetters) KeepDeadTotals(ctx context.Context) error {
	kept, rev, err := dl.keptTotals(ctx)
	if err != nil {
		return err
	}
	info, err := dl.StreamInfo(ctx, dl.Names.DeadStream())
	if err != nil {
		return err
	}
	switch last := info.State.LastSeq; {
	case info.Config.MaxAge > 0: // letters that expire are counted by those that are left
		return nil
	case last >= kept.Seq && last-kept.Seq < fewDead && kept.Messages+last-kept.Seq == info.State.Msgs:
		if err := dl.sameDead(ctx, kept); !errors.Is(err, errNotTheSame) {
			return err
		}
	}
	if kept.Begun.IsZero() {
		kept.Begun = time.Now().UTC()
	}
	c := newDeadCount(dl, kept, info.State)
	if rev, err = c.keep(ctx, rev); !errors.Is(err, errNotTheSame) || time.Since(kept.Begun).Abs() < recount {
		return err
	}
	c = newDeadCount(dl, &model.DeadTotals{Begun: time.Now().UTC()}, info.State)
	_, err = c.keep(ctx, rev)
	return err
}

// sameDead returns errNotTheSame unless the last counted message still exists.
func (dl *deadLetters) sameDead(ctx context.Context, kept *model.DeadTotals) error {
	if kept.Seq == 0 {
		return nil
	}
	found, _, err := dl.BatchGet(ctx, dl.Names.DeadStream(), wire.GetRequest{Seq: kept.Seq, Batch: 1})
	if err != nil {
		return err
	}
	if !isLastOf(kept, found) {
		return errNotTheSame
	}
	return nil
}

// keep counts to the end, and stores the totals on the way.
func (c *deadCount) keep(ctx context.Context, rev uint64) (uint64, error) {
	for saved := c.totals.Messages; !c.done; {
		if err := c.page(ctx); err != nil {
			return rev, err
		}
		if n := c.totals.Messages - saved; n == 0 || n < savedEvery && !c.done {
			continue
		}
		saved = c.totals.Messages
		data, err := json.Marshal(c.totals)
		if err != nil {
			return rev, err
		}
		if rev, err = c.letters.SaveRecord(ctx, model.Record{Key: wire.DeadTotalsKey, Data: data, Rev: rev}); err != nil {
			return rev, err // model.ErrOutdated: another coordinator counts, too
		}
	}
	return rev, nil
}

// mostOpen returns the stream with most open letters, the first by name of several, and their number.
func mostOpen(names []model.DeadName, index model.DeadIndex) (stream string, n int) {
	open := map[string]int{}
	for _, name := range names {
		if index.Open(name) {
			open[name.Stream]++
		}
	}
	for of, count := range open { // any order: the most, and of several the first by name
		if count > n || count == n && of < stream {
			stream, n = of, count
		}
	}
	return stream, n
}
