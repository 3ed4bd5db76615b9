package bus

import (
	"context"
	"math/bits"

	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/model"
)

// FollowReleases delivers the entries of all spaces of a partition, those that are inert possibly without their data. See port.Log.
func (l *logs) FollowReleases(ctx context.Context, partition int, after uint64, deliver func(model.LogEntry)) error {
	if err := l.CheckPartition(partition); err != nil {
		return err
	}
	stream, b := l.Names.LogStream(partition), &bodies{}
	t := wire.Tail{Stream: stream, After: after, Heads: b.left, Again: b.change}
	return l.FollowIf(ctx, t, func(m wire.Delivery) bool {
		e := entryOf(wire.LastToken(m.Subject), m.Seq, m.Time, m.Header, m.Data)
		if b.without && !e.Inert {
			whole, err := l.LeaderGet(ctx, stream, wire.GetRequest{Seq: m.Seq})
			// One that the leader does not have was purged, and is not delivered again, or that leader is deposed and does not know it yet.
			if err != nil || whole.Seq != m.Seq || wire.Header(whole.Header, wire.HeaderCommit) != e.ID {
				return false
			}
			e.Data = whole.Data
		}
		deliver(e)
		b.note(e.Inert)
		return true
	})
}

// bodies decides whether entries are delivered with their data. Where nearly all of them are inert, as where spaces do not send to each other,
// their data is most of what a server sends to a coordinator, which does not look at it. An entry of which the data is needed is
// then requested by itself, which takes longer than to get it with the entry; so that is for few.
type bodies struct {
	// without reports that the present consumer delivers no data.
	without bool
	// recent has a bit for each of the last 64 entries, set if it was not inert, and inert is the number of inert ones since the last other one.
	recent uint64
	inert  int
}

const (
	// mostlyInert is the number of inert entries in a row from which on entries come without data.
	mostlyInert = 256
	// manyOthers is the number of others among the last 64 from which on they come with it.
	manyOthers = 4
)

// left begins another consumer, and reports whether it leaves the data out.
func (b *bodies) left() bool {
	b.without = b.inert >= mostlyInert
	return b.without
}

// note counts an entry.
func (b *bodies) note(inert bool) {
	b.recent <<= 1
	if inert {
		b.inert++
		return
	}
	b.recent |= 1
	if !b.without || bits.OnesCount64(b.recent) >= manyOthers {
		b.inert = 0
	}
}

// change reports whether entries should come with their data from now on, or without.
func (b *bodies) change() bool { return b.without != (b.inert >= mostlyInert) }
