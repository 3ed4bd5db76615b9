package settle

import (
	"crypto/rand"
	"strings"
	"time"

	"github.com/settlehq/settle/model"
)

// EventID identifies an event of a stream in its space: events with the same id are one event, however
// often they are sent. ID, NewID and TimedID return one. It is comparable, and the zero EventID is
// invalid.
type EventID struct{ text string }

// ID returns the event id with a text. Derive it from what the event is about, such as an order number or
// the id of a webhook; NameOf maps any text to a valid one. It is valid with 1 to 160 letters, digits, '-'
// and '_', and is checked when it is used. Ids of events that handlers send or that were redriven have
// other characters, and are valid for looking up events, not for sending.
//
// A deployment remembers ids for its horizon, 7 days unless it was created with another; a plain id that
// is sent again after that is a new event. See TimedID.
func ID(text string) EventID { return EventID{text} }

// NewID returns a unique timed id, for an event that has no natural one. Keep it for retries.
func NewID() EventID { return TimedID(time.Now(), strings.ToLower(rand.Text()[:16])) }

// TimedID returns an id that carries a time: the time at which the sender decided to send the event, which
// must be the same in every retry. name is as in ID, and 16 characters shorter.
//
// A timed id that is older than the deployment's horizon is refused with an *ExpiredError, so the event
// takes effect at most once, without a time limit.
func TimedID(at time.Time, name string) EventID { return EventID{model.TimedEventID(at, name)} }

// String returns the text of the id.
func (id EventID) String() string { return id.text }
