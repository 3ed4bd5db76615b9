package bus

import (
	"strconv"
	"strings"

	"github.com/nats-io/nuid"

	"github.com/settlehq/settle/model"
)

// names builds and parses every name that the server sees. Its methods do not check
// their arguments: names are checked where they enter the bus.
type names struct {
	prefix string // of subjects
	upper  string // of streams and buckets
}

func newNames(prefix string) names {
	return names{prefix: prefix, upper: strings.ToUpper(prefix)}
}

// Streams and buckets.

func (n names) laneStream(p int) string  { return n.upper + "_LANE_" + strconv.Itoa(p) }
func (n names) logStream(p int) string   { return n.upper + "_LOG_" + strconv.Itoa(p) }
func (n names) stateBucket(p int) string { return n.upper + "_STATE_" + strconv.Itoa(p) }
func (n names) workersBucket() string    { return n.upper + "_WORKERS" }

func (n names) programsBucket() string { return n.upper + "_PROGRAMS" }

func (n names) deadStream() string { return n.upper + "_DEAD" }

// bucketStream returns the stream that holds a KV bucket, by the convention of all
// NATS clients.
func bucketStream(bucket string) string { return "KV_" + bucket }

// Subjects of the lane: every event has its own.

func (n names) lanes(p int) string { return n.laneOf(p) + "*.*.*" }

func (n names) laneOf(p int) string { return n.prefix + ".lane." + strconv.Itoa(p) + "." }

func (n names) laneOfSpace(p int, space string) string { return n.laneOf(p) + space + ".>" }

func (n names) event(p int, m *model.Message) string {
	return n.laneOf(p) + m.Space + "." + m.Stream + "." + m.ID
}

// eventsOf returns the subjects of the events with an id, in a space or in all of them ("").
func (n names) eventsOf(p int, space, id string) string {
	return n.laneOf(p) + any1(space) + ".*." + id
}

// any1 returns a token, or the wildcard for one.
func any1(token string) string {
	if token == "" {
		return "*"
	}
	return token
}

// Subjects of dead letters: those of the lane, without the partition.

func (n names) deads() string { return n.dead("", "", "") }

func (n names) dead(space, stream, id string) string {
	return n.prefix + ".dead." + any1(space) + "." + any1(stream) + "." + any1(id)
}

// Subjects of the log and its feed: every space has one of each.

func (n names) logs(p int) string { return n.log(p, "*") }

func (n names) log(p int, space string) string {
	return n.prefix + ".log." + strconv.Itoa(p) + "." + space
}

// feeds returns the subjects that the log is republished to, as a subject transform.
func (n names) feeds(p int) string { return n.feed(p, "{{wildcard(1)}}") }

func (n names) feed(p int, space string) string {
	return n.prefix + ".feed." + strconv.Itoa(p) + "." + space
}

// Keys of a STATE bucket. No name of a space or document can begin with '=', so keys do not
// collide.

const (
	markKey        = "=checkpoint"
	positionPrefix = "=pos."
)

func bucketSubject(bucket, key string) string { return "$KV." + bucket + "." + key }

// Core subjects.

func (n names) demand(p int) string         { return n.prefix + ".demand." + strconv.Itoa(p) }
func (n names) rollCall(p int) string       { return n.prefix + ".rollcall." + strconv.Itoa(p) }
func (n names) rollCalls() string           { return n.prefix + ".rollcall.*" }
func (n names) endpoint(name string) string { return n.prefix + ".api." + name }
func (n names) ping(id string) string       { return n.prefix + ".ping." + id }

// parseEvent reads space, stream and event id from a lane subject; ok is
// false for one that no Settle program writes.
func parseEvent(subject string) (m model.Message, ok bool) {
	rest := subject
	if m.ID, rest, ok = cutLast(rest); !ok {
		return m, false
	}
	if m.Stream, rest, ok = cutLast(rest); !ok {
		return m, false
	}
	m.Space, _, ok = cutLast(rest)
	ok = ok && checkMessage(&m) == nil
	return m, ok
}

// lastToken returns the part of a subject after its last dot.
func lastToken(subject string) string {
	return subject[strings.LastIndexByte(subject, '.')+1:]
}

func cutLast(subject string) (last, rest string, ok bool) {
	dot := strings.LastIndexByte(subject, '.')
	if dot < 0 {
		return "", "", false
	}
	return subject[dot+1:], subject[:dot], true
}

// checkMessage returns an error if the names of an event cannot be tokens of a subject.
func checkMessage(m *model.Message) error {
	if err := model.CheckName("space", m.Space); err != nil {
		return err
	}
	if err := model.CheckName("stream", m.Stream); err != nil {
		return err
	}
	return model.CheckAnyEventID(m.ID)
}

// shortID returns an id that is unique enough for people and the server's listings.
func shortID() string { return nuid.Next()[14:] }
