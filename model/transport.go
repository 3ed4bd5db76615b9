package model

import (
	"errors"
	"fmt"
	"time"
)

// Errors that a bus reports. Callers branch on them with errors.Is.
var (
	// ErrRefused: the head of the space was not where the append expected it.
	// Nothing was stored. Somebody else's commit stands there: read it.
	ErrRefused = errors.New("append refused: the space's log has moved on")
	// ErrTooLarge: the message exceeds what the server accepts. Nothing was
	// stored, and sending it again will not help.
	ErrTooLarge = errors.New("message larger than the server's max_payload")
	// ErrLaneFull: the LANE stream has reached a limit and refuses events. The
	// event was not stored; it can be sent again later.
	ErrLaneFull = errors.New("lane is full")
	// ErrForbidden: the server does not let this user store messages there. It was not
	// stored, unless an attempt before was whose answer got lost, and sending it again will
	// not help until the user's permissions are others.
	ErrForbidden = errors.New("the user of this connection may not publish there")
	// ErrStopped: the bus was closed before the answer was known. The message may
	// or may not have been stored.
	ErrStopped = errors.New("bus stopped")
	// ErrOutdated: another has already saved a newer state of the document, or the same one
	// (see OutdatedError).
	ErrOutdated = errors.New("a newer state is saved already, or the same")
	// ErrPurged: commits that would have to be read next are not in the log any more. A
	// checkpoint reaches further than they did: what was known is of no use, load again.
	ErrPurged = errors.New("the commits in between have been purged from the log")
	// ErrRewound: the store has gone back to an earlier state (a power cut without fsync, a
	// snapshot of its machine, an older copy). What was known is not what is stored: nothing
	// that rests on it is stored any more, and it has to be read anew.
	ErrRewound = errors.New("the store has gone back: what was known of it is not in it any more")
)

// Rewind says that a stream has gone back to an earlier state.
type Rewind struct {
	// At is when that was noticed, by the clock of the process.
	At     time.Time `json:"at"`
	Stream string    `json:"stream"`
	// Known is the sequence up to which the stream was known, Found what is there instead.
	Known uint64 `json:"known"`
	Found string `json:"found"`
}

// Append asks a bus to append one commit to a space's log.
type Append struct {
	Space string
	// ID tells this append from every other: Commit.ID and a nonce of whoever makes
	// it, as a restarted runtime counts its attempts anew. It travels in a header, so
	// that the append can be recognised in the log without decoding.
	ID string
	// Expect is the log sequence of the space's last commit, 0 for a space that
	// has none. The append is refused unless that is still so.
	Expect uint64
	Data   []byte
	Trace  Trace
	// Epoch is the bus's Epoch of before anything of the space was read. The append is not
	// made in another one: Expect may be the sequence of another commit by then.
	Epoch uint64
}

// LogEntry is one commit as it stands in the log.
type LogEntry struct {
	Space string
	Seq   uint64
	// ID is the Append.ID it was appended with.
	ID   string
	Data []byte // encoded Commit
	// Stored is when the server stored it, by its own clock.
	Stored time.Time
	// Prev is the sequence of the commit of the space that it was appended behind, 0 for
	// the first one. That commit may have been purged meanwhile.
	Prev uint64
}

// Follows returns ErrPurged unless the entry is what comes next for one who knows the
// space's log up to a sequence. Who applied it all the same would do so to a state that
// lacks the commits in between.
func (e *LogEntry) Follows(seq uint64) error {
	if e.Prev <= seq {
		return nil
	}
	return fmt.Errorf("space %s: the log is known up to %d and goes on with %d, which was appended behind %d: %w", e.Space, seq, e.Seq, e.Prev, ErrPurged)
}

// LogState says how large the log of a partition is.
type LogState struct {
	// First and Last are the sequences of the first and the last commit that it holds, 0
	// if it holds none.
	First, Last uint64
	// Commits is how many it holds, Bytes what they take.
	Commits, Bytes uint64
	// Old is the last sequence up to which all that it holds is older than was asked for, 0
	// if nothing is.
	Old uint64
	// Now is the time by the server's clock.
	Now time.Time
}

// Message is an event on its way into a lane, or as found there.
type Message struct {
	Space  string
	Stream string
	ID     string
	// Payload is whatever the sender wrote; nothing has parsed it.
	Payload  []byte
	Position uint64
	// Depth is Event.Depth.
	Depth uint64
	// NotBefore is Event.NotBefore.
	NotBefore int64
	// Expires is Event.Expires.
	Expires int64
	Trace   Trace
	// Invalid, if not "", makes the message a tombstone: it says why the event whose
	// place this is could not be delivered.
	Invalid string
	// Seq is the LANE sequence, and Stored the time by the server's clock at which the
	// event was stored; both are zero until then.
	Seq    uint64
	Stored time.Time
	// Bound says that the event follows from what was read in Epoch of the store: it is sent in no other
	// (ErrRewound). Neither is stored.
	Bound bool
	Epoch uint64
}

// SendResult is the answer to a Send.
type SendResult struct {
	// Seq is the LANE sequence under which the event was stored, 0 if it was a
	// duplicate.
	Seq uint64
	// Duplicate: an event with this id is in the lane already. That is a success.
	Duplicate bool
}

// StateDoc is one document as the STATE bucket holds it.
type StateDoc struct {
	Doc  string
	Data []byte // JSON; nil when the document does not exist (any more)
	// Seq is the log sequence of the last commit that changed the document.
	Seq uint64
	// Rev is the bucket's revision of the key, 0 if it has none. Saving compares
	// and sets it, so that a deposed owner cannot put an old state over a new one.
	Rev uint64
}

// SpaceState is what the STATE bucket knows of a space.
type SpaceState struct {
	Docs []StateDoc
	// Observations are what is known of nodes, see StateKeyOfNode. Their Seq is the basis
	// of the observation.
	Observations []StateDoc
	// Pieces are what is saved of the positions beside the mark, if those are many: see
	// StateKeyOfPiece. One may be newer than the mark.
	Pieces []StateDoc
	// Later are the events that wait for their time, see StateKeyOfSlot, and Due when the
	// space wants to be woken for them, see DueKey.
	Later []StateDoc
	// There is one of the latter at most.
	Due []StateDoc
	// Mark is the space's checkpoint mark (an encoded Mark), and is saved after
	// the documents. Its Seq is the log sequence from which the log must be read
	// on top. The zero StateDoc means: never checkpointed.
	Mark StateDoc
}

// Newest is the highest log sequence that anything of the state reflects, but for observations,
// which only spare work.
func (s *SpaceState) Newest() (seq uint64) {
	for _, items := range [][]StateDoc{s.Docs, s.Pieces, s.Later} {
		for i := range items {
			seq = max(seq, items[i].Seq)
		}
	}
	return max(seq, s.Mark.Seq)
}

// ListOf is the list that an item belongs to, by its key.
func (s *SpaceState) ListOf(key string) *[]StateDoc {
	if _, ok := NodeOfStateKey(key); ok {
		return &s.Observations
	}
	if _, ok := PieceOfStateKey(key); ok {
		return &s.Pieces
	}
	if _, ok := SlotOfStateKey(key); ok {
		return &s.Later
	}
	if key == DueKey {
		return &s.Due
	}
	return &s.Docs
}

// Due is a space that wants to be woken.
type Due struct {
	Space string
	// At is when, in milliseconds since 1970; 0 for never.
	At int64
}

// Lease is somebody's wish to observe a document. It keeps the computations
// alive that the document needs, until it runs out; observers renew theirs.
type Lease struct {
	Space   string        `json:"space"`
	Doc     string        `json:"doc"`
	Watcher string        `json:"watcher"` // unique per observation
	TTL     time.Duration `json:"ttl"`     // 0 ends the observation
}

// Member is a process of the fleet as it announces itself. All but ID, Beat and Left may
// be missing: earlier versions say no more.
type Member struct {
	ID string `json:"id"`
	// Beat counts the announcements of this member. A member whose beat stands
	// still for longer than the membership TTL is not there.
	Beat uint64 `json:"beat"`
	// Weight is its share of the partitions relative to others; 0 means 1.
	Weight float64 `json:"weight,omitzero"`
	// Left is set in a member's last announcement.
	Left bool `json:"left,omitzero"`

	// Life tells this process from any other that has had the same ID.
	Life string `json:"life,omitzero"`
	// Leaving is set as soon as the member means to leave: it gets no partition any
	// more, and still has those in Holds.
	Leaving bool `json:"leaving,omitzero"`
	// Holds are the partitions that it serves, until it has let go of them. Wants are
	// those that it is about to serve if nobody has said so before.
	Holds []int `json:"holds,omitzero"`
	Wants []int `json:"wants,omitzero"`

	// Role is what the process does, "" for a worker. Others than workers are never
	// given a partition; they set Left as well, for those to whom Role says nothing.
	Role string `json:"role,omitzero"`
	// Program is what the worker calls the programs that it hosts; "" is not told. All
	// workers of a deployment should host the same: nothing depends on the label, but
	// people are told when labels differ.
	Program string `json:"program,omitzero"`
	// Host, Version, Connection and Since are for people: the machine, the version of
	// the executable, the name of its connection in the server's listings, and its start
	// by its own clock.
	Host       string    `json:"host,omitzero"`
	Version    string    `json:"version,omitzero"`
	Connection string    `json:"connection,omitzero"`
	Since      time.Time `json:"since,omitzero"`
	// Done is, of a coordinator, how far it has released the log of each partition.
	Done []uint64 `json:"done,omitzero"`
}

// RoleCoordinator is the Role of a coordinator, RoleOrdered that of a server of package
// ordered, which has partitions like a worker.
const (
	RoleCoordinator = "coordinator"
	RoleOrdered     = "ordered"
)

// Key is the name under which a member's announcements are stored: a coordinator may have
// the ID of a worker. No ID has a '='.
func (m *Member) Key() string {
	if m.Role == "" {
		return m.ID
	}
	return m.Role + "=" + m.ID
}
