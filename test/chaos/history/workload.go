package history

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/settlehq/settle/model"
)

// Workload is what the clients of a run send, as a function of a seed.
type Workload struct {
	Seed uint64
	// Spaces that events are sent to, and clients that send them.
	Spaces, Clients int
}

// Streams. The first ones are sent by clients, the others by handlers.
const (
	Add    = "add"    // counts
	Chain  = "chain"  // sends a hop to another space, which sends one on, three in all
	Fan    = "fan"    // sends a leaf to each of four other spaces
	Echo   = "echo"   // sends its own space a follow-up, which sends it another
	Flaky  = "flaky"  // fails now and then in a way that may pass
	Fail   = "fail"   // writes and sends, and then fails
	Nobody = "nobody" // has no handler
	Stray  = "stray"  // sends to a stream of another space that has no handler

	Hop     = "hop"
	Leaf    = "leaf"
	Own     = "own"
	Nowhere = "nowhere"
)

// shares of the streams in what clients send, in thousandths.
var shares = []struct {
	stream string
	of     uint64
}{{Add, 550}, {Chain, 150}, {Fan, 80}, {Echo, 100}, {Flaky, 60}, {Fail, 35}, {Nobody, 15}, {Stray, 10}}

// Documents of a space.
const (
	// DocSum is {n, h}: how many events were handled, and a hash of which and in what order.
	DocSum = "sum"
	// DocSeen counts the events by where they came from.
	DocSeen = "seen"
	// DocView and DocPair are computed, if anybody looks.
	DocView = "view"
	DocPair = "pair"
)

// Space is the name of a space by its number.
func (w Workload) Space(i int) string { return fmt.Sprintf("s%02d", i%w.Spaces) }

// SpaceNumber is the inverse of Space.
func (w Workload) SpaceNumber(name string) (int, bool) {
	i, err := strconv.Atoi(strings.TrimPrefix(name, "s"))
	return i, err == nil && i >= 0 && i < w.Spaces && w.Space(i) == name
}

// EventID is the id of the n-th event (from 1) that a client sends to a space.
func EventID(client int, n uint32) string { return fmt.Sprintf("k%03d-%d", client, n) }

// ParseEventID is the inverse of EventID.
func ParseEventID(id string) (client int, n uint32, ok bool) {
	name, number, ok := strings.Cut(strings.TrimPrefix(id, "k"), "-")
	if !ok || !strings.HasPrefix(id, "k") {
		return 0, 0, false
	}
	client, err1 := strconv.Atoi(name)
	n64, err2 := strconv.ParseUint(number, 10, 32)
	return client, uint32(n64), err1 == nil && err2 == nil && client >= 0 && EventID(client, uint32(n64)) == id
}

// Stream is the one that the n-th event of a client to a space goes to.
func (w Workload) Stream(client, space int, n uint32) string {
	at := mix(w.Seed^uint64(client)<<48^uint64(space)<<32^uint64(n)) % 1000
	for _, s := range shares {
		if at < s.of {
			return s.stream
		}
		at -= s.of
	}
	return Add
}

// Sent is an event that a handler sends.
type Sent struct {
	To, Stream string
	Depth      int
}

// Sends are the events that the handling of an event sends, if it succeeds. depth is what
// came with the event, if a handler had sent it.
func (w Workload) Sends(space, stream, id string, depth int) []Sent {
	switch {
	case stream == Chain:
		return []Sent{{w.other(space, id, 0), Hop, 2}}
	case stream == Hop && depth > 0:
		return []Sent{{w.other(space, id, 0), Hop, depth - 1}}
	case stream == Fan:
		var all []Sent
		for k := range 4 {
			all = append(all, Sent{w.other(space, id, k), Leaf, 0})
		}
		return all
	case stream == Echo:
		return []Sent{{space, Own, 1}}
	case stream == Own && depth > 0:
		return []Sent{{space, Own, depth - 1}}
	case stream == Stray:
		return []Sent{{w.other(space, id, 0), Nowhere, 0}}
	}
	return nil
}

// other is a space other than the given one, the k-th that an event's id leads to.
func (w Workload) other(space, id string, k int) string {
	here, _ := w.SpaceNumber(space)
	step := 1 + (mix(uint64(Hash(id)))+uint64(k))%uint64(w.Spaces-1)
	return w.Space(here + int(step))
}

// Source is the key of DocSeen under which an event counts.
func Source(id string) string {
	if client, _, ok := ParseEventID(id); ok {
		return fmt.Sprintf("k%03d", client)
	}
	if strings.HasSuffix(id, ":"+model.Undelivered) {
		return model.Undelivered
	}
	if tx, ok := model.OriginOf(id); ok {
		return tx.Space
	}
	return "?"
}

// Sum is the content of DocSum.
type Sum struct {
	N int64  `json:"n"`
	H uint32 `json:"h"`
}

// Plus is the sum after one more event. It depends on the order.
func (s Sum) Plus(stream, id string) Sum {
	return Sum{s.N + 1, s.H*31 + Hash(stream+" "+id)}
}

// Value is the sum as a JSON value.
func (s Sum) Value() model.Value {
	return model.Object(model.F("n", s.N), model.F("h", int64(s.H)))
}

// SumOf reads DocSum.
func SumOf(v model.Value) Sum {
	n, _ := v.Get("n").AsInt()
	h, _ := v.Get("h").AsInt()
	return Sum{n, uint32(h)}
}

// Hash is a hash of a text.
func Hash(text string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text)) // a hash takes everything
	return h.Sum32()
}

// mix spreads bits (the finaliser of SplitMix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
