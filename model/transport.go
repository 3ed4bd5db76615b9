package model

import (
	"bytes"
	"errors"
	"fmt"
	"time"
)

// Errors of a bus. Test for them with errors.Is.
var (
	// ErrRefused: the head of the space was not where the append expected it. Nothing was stored; another
	// runtime's commit is there and must be read.
	ErrRefused = errors.New("append refused: the space's log has moved on")
	// ErrTooLarge: the message exceeds the server's limit. Nothing was stored, and sending it again
	// will not help.
	ErrTooLarge = errors.New("message larger than the server's max_payload")
	// ErrLaneFull: the LANE stream has reached a limit and refuses events. The
	// event was not stored; it can be sent again later.
	ErrLaneFull = errors.New("lane is full")
	// ErrForbidden: the server does not allow this user to store messages there. Nothing was stored, except
	// possibly by an earlier attempt whose answer was lost; sending it again will not help until the
	// permissions are changed.
	ErrForbidden = errors.New("the user of this connection may not publish there")
	// ErrStopped: the bus was closed before the answer was known. The message may or may not be
	// stored.
	ErrStopped = errors.New("bus stopped")
	// ErrOutdated: another runtime has already saved the same or a newer state of the document (see
	// OutdatedError).
	ErrOutdated = errors.New("a newer state is saved already, or the same")
	// ErrPurged: the commits to read next are no longer in the log. A checkpoint covers them:
	// discard the state in memory and load it again.
	ErrPurged = errors.New("the commits in between have been purged from the log")
	// ErrRewound: the store has gone back to an earlier state (a power cut without fsync, a snapshot of its
	// machine, an older copy). Its content differs from what was known of it: requests that depend on that
	// knowledge are refused, and it must be read again.
	ErrRewound = errors.New("the store has gone back: it no longer contains what was known of it")
	// ErrNoStream: a stream of the deployment does not exist: it was deleted, or never created.
	ErrNoStream = errors.New("no such stream")
)

// Rewind records that a stream has gone back to an earlier state.
type Rewind struct {
	// At is when the process noticed it, by its clock.
	At     time.Time `json:"at"`
	Stream string    `json:"stream"`
	// Known is the last known sequence of the stream, Found the last one that it now has.
	Known uint64 `json:"known"`
	Found string `json:"found"`
}

// sameRewind is how far apart in time two processes may notice the same rewind.
const sameRewind = 10 * time.Minute

// IsSame reports whether two processes have noticed the same rewind.
func (r *Rewind) IsSame(o *Rewind) bool {
	return r.Stream == o.Stream && o.At.Sub(r.At).Abs() < sameRewind
}

// RewindNote is a Rewind that a process has recorded in the deployment, for operators.
type RewindNote struct {
	Rewind
	// By names the process that noticed it: its role and its id.
	By string `json:"by"`
	// Acknowledged is set if an operator has acknowledged it. It is not part of the stored note.
	Acknowledged bool `json:"-"`
}

// RewindFor is how long a rewind is reported that no operator has acknowledged.
const RewindFor = 7 * 24 * time.Hour

// ShouldReport reports whether a rewind must still be reported.
func (n *RewindNote) ShouldReport(now time.Time) bool {
	return !n.Acknowledged && now.Sub(n.At) < RewindFor
}

// Append is a request to append one commit to a space's log.
type Append struct {
	Space string
	// ID distinguishes this append from all others: Commit.ID and a nonce of the runtime, since a restarted
	// runtime counts its attempts from the start. It is sent in a header, so that the append can be
	// recognised in the log without decoding.
	ID string
	// Expect is the log sequence of the space's last commit, 0 for a space without one. The append is refused
	// if the space has another last commit.
	Expect uint64
	Data   []byte
	// Inert is Commit.IsInert. It is sent in a header, so that coordinators need not decode the commit.
	Inert bool
	Trace Trace
	// Epoch is the bus's Epoch before anything of the space was read. The append fails in any other epoch, in
	// which Expect may be the sequence of a different commit.
	Epoch uint64
}

// LogEntry is one commit in the log.
type LogEntry struct {
	Space string
	Seq   uint64
	// ID is the Append.ID with which it was appended.
	ID   string
	Data []byte // encoded Commit
	// Stored is when the server stored it, by its own clock.
	Stored time.Time
	// Prev is the sequence of the previous commit of the space, 0 for the first one. That commit may have
	// been purged since.
	Prev uint64
	// Inert is Append.Inert; false also for a commit of a version that did not note it.
	Inert bool
	// Trace is the context of the span of the append.
	Trace Trace

	decoded func() (*Commit, error) // see Shared
}

// Follows returns ErrPurged unless the entry is the next one after sequence seq of the space's log.
// Applying it otherwise would skip the commits in between.
func (e *LogEntry) Follows(seq uint64) error {
	if e.Prev <= seq {
		return nil
	}
	return fmt.Errorf("space %s: the log is known up to %d, and the next commit is %d, which was appended after %d: %w", e.Space, seq, e.Seq, e.Prev, ErrPurged)
}

// LogState describes the log of a partition.
type LogState struct {
	// First and Last are the sequences of its first and last commit, 0 if it has none.
	First, Last uint64
	// Commits is the number of commits, Bytes their size.
	Commits, Bytes uint64
	// Old is the last sequence up to which all commits are older than the requested age, 0 if there
	// are none.
	Old uint64
	// Now is the time by the server's clock.
	Now time.Time
}

// Message is an event to be stored in a lane, or as read from a lane.
type Message struct {
	Space  string
	Stream string
	ID     string
	// Payload is what the sender wrote, not parsed.
	Payload  []byte
	Position uint64
	// Term, PrevTerm and ReplayKey are those of Event.
	Term, PrevTerm, ReplayKey uint64
	// Depth is Event.Depth.
	Depth uint64
	// NotBefore is Event.NotBefore.
	NotBefore int64
	// Expires is Event.Expires.
	Expires int64
	Trace   Trace
	// Invalid, if not "", makes the message a tombstone: it is the reason why the event in this place could
	// not be delivered.
	Invalid string
	// Seq is the LANE sequence, and Stored the time by the server's clock at which the event was stored; both
	// are zero until then.
	Seq    uint64
	Stored time.Time
	// Bound marks an event that follows from what was read in Epoch of the store: in another epoch the send
	// fails with ErrRewound. Neither field is stored.
	Bound bool
	Epoch uint64
}

// SendResult is the answer to a Send.
type SendResult struct {
	// Seq is the LANE sequence under which the event was stored, 0 if it was a
	// duplicate.
	Seq uint64
	// Duplicate reports that an event with this id is in the lane already. That counts as success.
	Duplicate bool
}

// ReusedIDError is the error of a call whose event was not stored, because an earlier event with another payload has its id.
// Absent and null count as the same payload, because clients write one for the other; zero is another one.
type ReusedIDError struct{ Space, Stream, ID string }

func (e *ReusedIDError) Error() string {
	return fmt.Sprintf("event %s to %s/%s: an event of this id was sent before, with another payload; this one is not stored, and the earlier one counts. "+
		"Give each event an id of its own; an event that is sent again has the same payload", e.ID, e.Space, e.Stream)
}

// SamePayload reports whether two messages have the same payload, whatever its form: the white space and the order of keys
// do not matter, and a message without payload is one with null.
func SamePayload(a, b *Message) bool {
	if bytes.Equal(a.Payload, b.Payload) {
		return true
	}
	parse := func(m *Message) (Value, error) {
		if len(m.Payload) == 0 {
			return Null(), nil
		}
		return ParseValue(m.Payload)
	}
	v, err := parse(a)
	w, other := parse(b)
	return err == nil && other == nil && Equal(v, w)
}

// StateDoc is one document in the STATE bucket.
type StateDoc struct {
	Doc  string
	Data []byte // JSON; nil if the document does not exist
	// Seq is the log sequence of the last commit that changed the document, or a later one whose state was saved.
	Seq uint64
	// Rev is the bucket's revision of the key, 0 if it has none. A save is a compare-and-set on it,
	// so that a deposed owner cannot overwrite a newer state.
	Rev uint64
	// Kept is set if the document was stored again without a change.
	Kept Kept
}

// Kept says where a document was stored first that was stored again without a change: under Rev, after the commit at Seq had
// changed it. It replaces nothing but that, or another copy of it.
type Kept struct{ Rev, Seq uint64 }

// Changed returns the log sequence of the last commit that changed the document.
func (d *StateDoc) Changed() uint64 {
	if d.Kept.Rev > 0 {
		return d.Kept.Seq
	}
	return d.Seq
}

// First returns the revision under which the document was stored after its last change.
func (d *StateDoc) First() uint64 {
	if d.Kept.Rev > 0 {
		return d.Kept.Rev
	}
	return d.Rev
}

// SpaceState is the state of a space in the STATE bucket.
type SpaceState struct {
	Docs []StateDoc
	// Observations are the saved observations of nodes, see StateKeyOfNode. Their Seq is the log sequence up
	// to which the node is up to date.
	Observations []StateDoc
	// Pieces hold positions that do not fit into the mark, see StateKeyOfPiece. A piece may be newer than the
	// mark.
	Pieces []StateDoc
	// Later are the events that wait for their time, see StateKeyOfSlot.
	Later []StateDoc
	// Due, which has at most one item, is when the space must be loaded for them, see DueKey.
	Due []StateDoc
	// Quarantine are the records of commits that cannot be read, see Quarantined. Their Seq counts their
	// changes.
	Quarantine []StateDoc
	// Mark is the space's checkpoint mark (an encoded Mark), which is saved after the documents.
	// Its Seq is the log sequence after which the log must be read. The zero StateDoc means that
	// there is no checkpoint.
	Mark StateDoc
}

// Newest returns the highest log sequence that any part of the state reflects, except observations, which
// only save work.
func (s *SpaceState) Newest() (seq uint64) {
	for _, items := range [][]StateDoc{s.Docs, s.Pieces, s.Later} {
		for i := range items {
			seq = max(seq, items[i].Seq)
		}
	}
	return max(seq, s.Mark.Seq)
}

// ListOf returns the list that an item belongs to, by its key.
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
	if _, ok := QuarantineOfStateKey(key); ok {
		return &s.Quarantine
	}
	return &s.Docs
}

// Part returns the mark and the item with a key, without the others.
func (s *SpaceState) Part(key string) SpaceState {
	part := SpaceState{Mark: s.Mark}
	for _, d := range *s.ListOf(key) {
		if d.Doc == key {
			*part.ListOf(key) = []StateDoc{d}
		}
	}
	return part
}

// Due is a space that must be loaded at a time.
type Due struct {
	Space string
	// At is the time, in milliseconds since 1970; 0 for never.
	At int64
}

// LeaseTTL is how long an observation outlives its observer; observers renew their leases three times in that
// period. It limits how long computations continue for a client that has vanished.
const LeaseTTL = 6 * time.Second

// Lease makes an observer keep a document observed until it expires, and with it the computations that the
// document depends on; observers renew their leases.
type Lease struct {
	Space   string        `json:"space"`
	Doc     string        `json:"doc"`
	Watcher string        `json:"watcher"` // unique per observation
	TTL     time.Duration `json:"ttl"`     // 0 ends the observation
}

// Member is a process of the fleet, as it announces itself. All fields but ID, Beat and Left may be missing
// from announcements of earlier versions.
type Member struct {
	ID string `json:"id"`
	// Beat counts the announcements of this member. A member whose beat has not changed for the membership
	// TTL is considered gone.
	Beat uint64 `json:"beat"`
	// Weight is its share of the partitions relative to other members; 0 means 1.
	Weight float64 `json:"weight,omitzero"`
	// Left is set in a member's last announcement.
	Left bool `json:"left,omitzero"`

	// Life distinguishes this process from earlier ones with the same ID.
	Life string `json:"life,omitzero"`
	// Leaving is set when the member begins to leave: it gets no more partitions, but still has those in
	// Holds.
	Leaving bool `json:"leaving,omitzero"`
	// Holds are the partitions that it serves until it has released them. Wants are those that it is about to
	// serve unless another member has claimed them earlier.
	Holds []int `json:"holds,omitzero"`
	Wants []int `json:"wants,omitzero"`

	// Role is what the process does, "" for a worker. A coordinator is never given a partition; it also sets
	// Left, for members of versions that do not read Role.
	Role string `json:"role,omitzero"`
	// Program is the worker's label for the programs that it hosts, "" if it has none. All workers of a
	// deployment should host the same programs: nothing depends on the label, but differing labels are
	// reported to operators.
	Program string `json:"program,omitzero"`
	// Host, Version, Connection and Since are informative: the machine, the version of the executable, the
	// name of its connection in the server's listings, and its start by its own clock.
	Host       string    `json:"host,omitzero"`
	Version    string    `json:"version,omitzero"`
	Connection string    `json:"connection,omitzero"`
	Since      time.Time `json:"since,omitzero"`
	// Done is how far a coordinator has released the log of each partition.
	Done []uint64 `json:"done,omitzero"`
	// Full are the lanes that have no room for events that this coordinator must release.
	Full []FullLane `json:"full,omitzero"`
	// Limits are this member's parts of what all members together may do (docs/adr/0066).
	Limits []LimitClaim `json:"limits,omitzero"`
}

// LimitClaim is a member's part of a limit: how much it could use, and how much of that it claims. What it uses is never more than the claim.
type LimitClaim struct {
	Name  string `json:"name"`
	Want  int    `json:"want"`
	Claim int    `json:"claim"`
}

// FullLane is a lane that has no room for events that other spaces have sent to spaces of its partition.
type FullLane struct {
	Partition int `json:"partition"`
	// Space is the target of the first event that found no room, at Since by the clock of the coordinator.
	// Waiting is the number of waiting events, not counting those behind them in their logs.
	Space   string    `json:"space"`
	Since   time.Time `json:"since"`
	Waiting int       `json:"waiting"`
}

// RoleCoordinator is the Role of a coordinator, RoleOrdered that of a server of package ordered, which has
// partitions like a worker.
const (
	RoleCoordinator = "coordinator"
	RoleOrdered     = "ordered"
)

// Key returns the name under which a member's announcements are stored: a coordinator may have the ID of a
// worker. No ID contains a '='.
func (m *Member) Key() string {
	if m.Role == "" {
		return m.ID
	}
	return m.Role + "=" + m.ID
}
