package wire

import (
	"strconv"
	"strings"

	"github.com/nats-io/nuid"

	"github.com/settlehq/settle/model"
)

// Names builds and parses every name that the server sees. Its methods do not check
// their arguments: names are checked where they enter the bus.
type Names struct {
	Prefix string // of subjects
	Upper  string // of streams and buckets
}

func NewNames(prefix string) Names {
	return Names{Prefix: prefix, Upper: strings.ToUpper(prefix)}
}

// Streams and buckets.

func (n Names) LaneStream(p int) string  { return n.Upper + "_LANE_" + strconv.Itoa(p) }
func (n Names) LogStream(p int) string   { return n.Upper + "_LOG_" + strconv.Itoa(p) }
func (n Names) StateBucket(p int) string { return n.Upper + "_STATE_" + strconv.Itoa(p) }
func (n Names) WorkersBucket() string    { return n.Upper + "_WORKERS" }

func (n Names) ProgramsBucket() string { return n.Upper + "_PROGRAMS" }

func (n Names) DeadStream() string { return n.Upper + "_DEAD" }

// BucketStream returns the stream that holds a KV bucket, by the convention of all
// NATS clients.
func BucketStream(bucket string) string { return "KV_" + bucket }

// Subjects of the lane: every event has its own.

func (n Names) Lanes(p int) string { return n.LaneOf(p) + "*.*.*" }

func (n Names) LaneOf(p int) string { return n.Prefix + ".lane." + strconv.Itoa(p) + "." }

func (n Names) LaneOfSpace(p int, space string) string { return n.LaneOf(p) + space + ".>" }

func (n Names) Event(p int, m *model.Message) string {
	return n.LaneOf(p) + m.Space + "." + m.Stream + "." + m.ID
}

// EventsOf returns the subjects of the events with an id, in a space or in all of them ("").
func (n Names) EventsOf(p int, space, id string) string {
	return n.LaneOf(p) + any1(space) + ".*." + id
}

// any1 returns a token, or the wildcard for one.
func any1(token string) string {
	if token == "" {
		return "*"
	}
	return token
}

// Subjects of dead letters: those of the lane, without the partition.

func (n Names) Deads() string { return n.Dead("", "", "") }

func (n Names) Dead(space, stream, id string) string {
	return n.Prefix + ".dead." + any1(space) + "." + any1(stream) + "." + any1(id)
}

// Subjects of the log and its feed: every space has one of each.

func (n Names) Logs(p int) string { return n.Log(p, "*") }

func (n Names) Log(p int, space string) string {
	return n.Prefix + ".log." + strconv.Itoa(p) + "." + space
}

// Feeds returns the subjects that the log is republished to, as a subject transform.
func (n Names) Feeds(p int) string { return n.Feed(p, "{{wildcard(1)}}") }

func (n Names) Feed(p int, space string) string {
	return n.Prefix + ".feed." + strconv.Itoa(p) + "." + space
}

// Keys of a STATE bucket. No name of a space or document can begin with '=', so keys do not
// collide.

const (
	MarkKey        = "=checkpoint"
	PositionPrefix = "=pos."
)

func BucketSubject(bucket, key string) string { return "$KV." + bucket + "." + key }

// Core subjects.

func (n Names) Demand(p int) string         { return n.Prefix + ".demand." + strconv.Itoa(p) }
func (n Names) RollCall(p int) string       { return n.Prefix + ".rollcall." + strconv.Itoa(p) }
func (n Names) RollCalls() string           { return n.Prefix + ".rollcall.*" }
func (n Names) Endpoint(name string) string { return n.Prefix + ".api." + name }
func (n Names) Ping(id string) string       { return n.Prefix + ".ping." + id }

// ParseEvent reads space, stream and event id from a lane subject; ok is
// false for one that no Settle program writes.
func ParseEvent(subject string) (m model.Message, ok bool) {
	rest := subject
	if m.ID, rest, ok = cutLast(rest); !ok {
		return m, false
	}
	if m.Stream, rest, ok = cutLast(rest); !ok {
		return m, false
	}
	m.Space, _, ok = cutLast(rest)
	ok = ok && CheckMessage(&m) == nil
	return m, ok
}

// LastToken returns the part of a subject after its last dot.
func LastToken(subject string) string {
	return subject[strings.LastIndexByte(subject, '.')+1:]
}

func cutLast(subject string) (last, rest string, ok bool) {
	dot := strings.LastIndexByte(subject, '.')
	if dot < 0 {
		return "", "", false
	}
	return subject[dot+1:], subject[:dot], true
}

// CheckMessage returns an error if the names of an event cannot be tokens of a subject.
func CheckMessage(m *model.Message) error {
	if err := model.CheckName("space", m.Space); err != nil {
		return err
	}
	if err := model.CheckName("stream", m.Stream); err != nil {
		return err
	}
	return model.CheckAnyEventID(m.ID)
}

// ShortID returns an id that is unique enough for people and the server's listings.
func ShortID() string { return nuid.Next()[14:] }

// BackupKey is the record of the newest backup. Users of the role backup may store only this one.
const BackupKey = "backup.newest"

// DeadTotalsKey is the record of the totals of the dead letters, which coordinators keep.
const DeadTotalsKey = "dead.totals"

// RewindKey begins the keys of the records in which processes note that a stream has gone back: there
// is one for each such stream.
const RewindKey = "rewind"
