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

// Subjects of the lane: every event has its own. What the system sends, under an id that it has minted, lies under
// "lane", and what clients send under "send", with the principal last if there is one. Nothing else decides which of the two
// a message is (docs/adr/0042). The space is at the same place in both, so one pattern matches the events of a space.

const (
	kindLane = "lane"
	kindSend = "send"
)

// Lanes returns the subjects of a LANE stream.
func (n Names) Lanes(p int) []string {
	return []string{n.SystemLanes(p), n.sendOf(p) + "*.*.*", n.sendOf(p) + "*.*.*.*"}
}

// SystemLanes returns the subjects of what is not sent by clients, the only ones of a deployment of an earlier version.
func (n Names) SystemLanes(p int) string { return n.laneOf(p) + "*.*.*" }

// Sends returns the subjects under which clients send to all lanes: those without a principal, and those with one.
func (n Names) Sends(principal string) string {
	subjects := n.Prefix + ".send.*.*.*.*"
	if principal != "" {
		subjects += "." + principal
	}
	return subjects
}

// Fill returns the subject of a message of a lane that is no event.
func (n Names) Fill(p int) string {
	return n.laneOf(p) + fillName + "." + fillName + "." + ShortID()
}

// fillName is a token that no event has.
const fillName = "="

func (n Names) laneOf(p int) string   { return n.Prefix + ".lane." + strconv.Itoa(p) + "." }
func (n Names) sendOf(p int) string   { return n.Prefix + ".send." + strconv.Itoa(p) + "." }
func (n Names) eitherOf(p int) string { return n.Prefix + ".*." + strconv.Itoa(p) + "." }

// LaneOfSpace returns a pattern for the events of a space.
func (n Names) LaneOfSpace(p int, space string) string { return n.eitherOf(p) + space + ".>" }

// Event returns the subject of an event.
func (n Names) Event(p int, m *model.Message) string {
	if model.IsMinted(m.ID) {
		return n.laneOf(p) + m.Space + "." + m.Stream + "." + m.ID
	}
	principal, id := model.CutPrincipal(m.ID)
	subject := n.sendOf(p) + m.Space + "." + m.Stream + "." + id
	if principal != "" {
		subject += "." + principal
	}
	return subject
}

// EventsOf returns the subjects of the events with an id, in a space and a stream, or in all of them (""). Clients of earlier
// versions have sent theirs under "lane".
func (n Names) EventsOf(p int, space, stream, id string) string {
	m := model.Message{Space: any1(space), Stream: any1(stream), ID: id}
	if !model.IsMinted(id) && m.By() == "" {
		return n.eitherOf(p) + m.Space + "." + m.Stream + "." + id
	}
	return n.Event(p, &m)
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

// ParseDead reads the names of an event from the subject of a letter about it.
func (n Names) ParseDead(subject string) (m model.Message, ok bool) {
	names, ok := strings.CutPrefix(subject, n.deadOf())
	if !ok {
		return m, false
	}
	return ParseNames(names)
}

func (n Names) deadOf() string { return n.Prefix + ".dead." }

func (n Names) Dead(space, stream, id string) string {
	return n.deadOf() + any1(space) + "." + any1(stream) + "." + any1(id)
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
func (n Names) Attached(p int) string       { return n.Prefix + ".attached." + strconv.Itoa(p) }
func (n Names) RollCall(p int) string       { return n.Prefix + ".rollcall." + strconv.Itoa(p) }
func (n Names) RollCalls() string           { return n.Prefix + ".rollcall.*" }
func (n Names) Endpoint(name string) string { return n.Prefix + ".api." + name }
func (n Names) Ping(id string) string       { return n.Prefix + ".ping." + id }

// Subjects of work that is offered to performers (docs/performers.md).

// Work returns where work of an action is offered, or that of one of its queues.
func (n Names) Work(action, queue string) string {
	if queue != "" {
		queue = "." + queue
	}
	return n.Prefix + ".work." + action + queue
}

// Works returns the subjects of all work.
func (n Names) Works() string { return n.Prefix + ".work.>" }

// WorkAnswers returns where the answers to the offers of a connection go, and WorkAnswer those to one offer.
func (n Names) WorkAnswers(connection string) string { return n.WorkAnswer(connection, "*") }

func (n Names) WorkAnswer(connection, token string) string {
	return n.Prefix + ".answer." + connection + "." + token
}

// WorkCancel returns where the performer of an offer is notified that it can stop.
func (n Names) WorkCancel(token string) string { return n.Prefix + ".cancel." + token }

// PerformersQueue is the queue group of performers.
const PerformersQueue = "performers"

// ParseEvent reads space, stream and event id from a subject of a lane; ok is false for one that no Settle program writes.
// sent reports that the subject is one of clients: then nothing else in the message counts for what only the system says.
func ParseEvent(subject string) (m model.Message, sent, ok bool) {
	_, rest, _ := strings.Cut(subject, ".")
	kind, rest, _ := strings.Cut(rest, ".")
	_, rest, _ = strings.Cut(rest, ".") // the partition
	sent = kind == kindSend
	if !sent && kind != kindLane {
		return m, false, false
	}
	names, principal := rest, ""
	if sent && strings.Count(rest, ".") == eventTokens {
		principal, names, _ = cutLast(rest)
		if model.CheckName("principal", principal) != nil {
			return m, true, false
		}
	}
	m, ok = ParseNames(names)
	if sent && ok && model.CheckEventID(m.ID) != nil {
		return m, true, false
	}
	m.ID = model.EventIDOf(principal, m.ID)
	return m, sent, ok && (sent || m.By() == "" || model.IsMinted(m.ID))
}

// IsSendSubject reports whether a subject, or a pattern, is one of clients, IsLaneSubject whether it is one of the system.
func IsSendSubject(subject string) bool { return kindOf(subject) == kindSend }

func IsLaneSubject(subject string) bool { return kindOf(subject) == kindLane }

func kindOf(subject string) string {
	_, rest, _ := strings.Cut(subject, ".")
	kind, _, _ := strings.Cut(rest, ".")
	return kind
}

// eventTokens is how many tokens the names of an event have.
const eventTokens = 3

// ParseNames reads the names of an event from "<space>.<stream>.<event id>".
func ParseNames(names string) (m model.Message, ok bool) {
	if strings.Count(names, ".") != eventTokens-1 {
		return m, false
	}
	m.Space, names, _ = strings.Cut(names, ".")
	m.Stream, m.ID, _ = strings.Cut(names, ".")
	return m, CheckMessage(&m) == nil
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

// ImportedAPI returns what precedes the subjects of the JetStream API in an account that imports it. Under the usual ones, the
// servers answer there that the account has no streams.
func (n Names) ImportedAPI() string { return n.Prefix + ".js." }

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
