package history

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/settlehq/settle/model"
)

// Workload is the events that the clients of a run send, as a function of a seed.
type Workload struct {
	Seed uint64
	// Spaces and Clients are the numbers of spaces and of clients that send events to them.
	Spaces, Clients int
	// Hosted is how many of the spaces, the last ones, run the deployed program in Starlark; the others
	// run the program in Go.
	Hosted int
}

// Streams. The first ones are sent by clients, the others by handlers.
const (
	Add    = "add"    // counts
	Chain  = "chain"  // sends a hop to another space, which sends one on, three in all
	Fan    = "fan"    // sends a leaf to each of four other spaces
	Echo   = "echo"   // sends its own space a follow-up, which sends it another
	Flaky  = "flaky"  // sometimes fails with a transient error
	Fail   = "fail"   // writes and sends, and then fails
	Nobody = "nobody" // has no handler
	Stray  = "stray"  // sends to a stream of another space that has no handler
	Later  = "later"  // sends its own space and another one an event that waits for its time
	Alarm  = "alarm"  // sets a timer, which takes the place of the one that was set before
	Mark   = "mark"   // writes a document that nothing else writes
	Unmark = "unmark" // deletes it
	Work   = "work"   // starts a task

	Hop     = "hop"
	Leaf    = "leaf"
	Own     = "own"
	Nowhere = "nowhere"
	// Job is the action whose tasks Work starts; the events of its stream report the ends of tasks.
	Job = "job"
)

// shares of the streams among the events of clients, in thousandths.
var shares = []struct {
	stream string
	of     uint64
}{
	{Add, 430},
	{Chain, 150},
	{Fan, 80},
	{Echo, 90},
	{Flaky, 60},
	{Fail, 35},
	{Nobody, 15},
	{Stray, 10},
	{Later, 40},
	{Alarm, 30},
	{Mark, 25},
	{Unmark, 15},
	{Work, 20},
}

// Documents of a space.
const (
	// DocSum is {n, h}: the number of handled events, and a hash of their ids in order.
	DocSum = "sum"
	// DocSeen counts the events by origin.
	DocSeen = "seen"
	// DocView and DocPair are derived, while they are observed.
	DocView = "view"
	DocPair = "pair"
	// DocMark exists between a Mark and the next Unmark; DocMarked is computed from it, and from
	// the target of its link.
	DocMark   = "mark"
	DocMarked = "marked"
)

// Space returns the name of a space by its number.
func (w Workload) Space(i int) string { return fmt.Sprintf("s%02d", i%w.Spaces) }

// SpaceNumber is the inverse of Space.
func (w Workload) SpaceNumber(name string) (int, bool) {
	i, err := strconv.Atoi(strings.TrimPrefix(name, "s"))
	return i, err == nil && i >= 0 && i < w.Spaces && w.Space(i) == name
}

// EventID returns the id of the n-th event (from 1) that a client sends to a space.
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

// Stream returns the stream of the n-th event of a client to a space.
func (w Workload) Stream(client, space int, n uint32) string {
	at := mix(w.Seed^uint64(client)<<48^uint64(space)<<32^uint64(n)) % 1000
	for _, s := range shares {
		if at < s.of {
			return w.offered(space, s.stream)
		}
		at -= s.of
	}
	return Add
}

// offered returns the stream itself, or Add if the program in Starlark has no handler for it.
func (w Workload) offered(space int, stream string) string {
	if w.IsHosted(space) && (stream == Flaky || stream == Work) {
		return Add
	}
	return stream
}

// IsHosted reports whether a space runs the program in Starlark.
func (w Workload) IsHosted(space int) bool { return space%w.Spaces >= w.Spaces-w.Hosted }

// Sent is an event that a handler sends.
type Sent struct {
	To, Stream string
	Depth      int
	// After is its delay in milliseconds, Timer the name of its timer.
	After int64
	Timer string
}

// Sends returns the events that the handler of an event sends, if it succeeds. depth is the depth of the
// event, if a handler had sent it.
func (w Workload) Sends(space, stream, id string, depth int) []Sent {
	switch {
	case stream == Chain:
		return []Sent{{To: w.other(space, id, 0), Stream: Hop, Depth: 2}}
	case stream == Hop && depth > 0:
		return []Sent{{To: w.other(space, id, 0), Stream: Hop, Depth: depth - 1}}
	case stream == Fan:
		var all []Sent
		for k := range 4 {
			all = append(all, Sent{To: w.other(space, id, k), Stream: Leaf})
		}
		return all
	case stream == Echo:
		return []Sent{{To: space, Stream: Own, Depth: 1}}
	case stream == Own && depth > 0:
		return []Sent{{To: space, Stream: Own, Depth: depth - 1}}
	case stream == Stray:
		return []Sent{{To: w.other(space, id, 0), Stream: Nowhere}}
	case stream == Later:
		after := 100 + int64(spread(Hash(id))%4096)
		return []Sent{{To: space, Stream: Own, After: after}, {To: w.other(space, id, 0), Stream: Leaf, After: after}}
	case stream == Alarm:
		return []Sent{{To: space, Stream: Own, After: 500 + int64(spread(Hash(id))%4096), Timer: Alarm}}
	}
	return nil
}

// Ends reports whether a transaction is one by which a space reports the end of a task to itself.
func Ends(tx *model.Tx) bool { return tx.By == model.EndBy(Job) }

// JobKey returns the key of the task whose end an event of the lane reports, "" if it reports none.
func JobKey(id string) string {
	what, rest, _ := strings.Cut(id, ":")
	_, key, ok := strings.Cut(rest, "-")
	if !ok || !strings.HasPrefix(what, "done") {
		return ""
	}
	return key
}

// other returns a space other than the given one, the k-th that an event's id leads to.
func (w Workload) other(space, id string, k int) string {
	here, _ := w.SpaceNumber(space)
	step := 1 + (int(spread(Hash(id)))+k)%(w.Spaces-1)
	return w.Space(here + step)
}

// Source returns the key of DocSeen under which an event counts.
func Source(stream, id string) string {
	if stream == Job {
		return Job
	}
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

// Plus returns the sum after one more event. It depends on the order.
func (s Sum) Plus(stream, id string) Sum {
	return Sum{s.N + 1, s.H*31 + Hash(stream+" "+id)}
}

// Value returns the sum as a JSON value.
func (s Sum) Value() model.Value {
	return model.Object(model.F("n", s.N), model.F("h", int64(s.H)))
}

// SumOf reads DocSum.
func SumOf(v model.Value) Sum {
	n, _ := v.Get("n").AsInt()
	h, _ := v.Get("h").AsInt()
	return Sum{n, uint32(h)}
}

// Hash returns a hash of a text.
func Hash(text string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text)) // a hash takes everything
	return h.Sum32()
}

// spread spreads bits, with arithmetic that fits into 64 bits, because the program in Starlark does the
// same.
func spread(x uint32) uint32 {
	x = (x ^ x>>16) * 0x45d9f3b
	return x ^ x>>16
}

// mix spreads bits (the finaliser of SplitMix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
