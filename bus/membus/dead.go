package membus

import (
	"fmt"

	"github.com/settlehq/settle/model"
)

// deadStore stores the dead letters.
type deadStore struct {
	*data
	dead dead
}

// dead is the DEAD stream: one letter per event.
type dead struct {
	stream[[]byte]
	stored map[eventKey]uint64
}

func newDead() dead {
	return dead{stream: newStream[[]byte](), stored: map[eventKey]uint64{}}
}

// StoreDead stores an encoded dead letter unless the event has one. It returns model.ErrTooLarge if it does not
// fit.
func (s *deadStore) StoreDead(space, stream, id string, letter []byte) error {
	if len(letter)+headerSize("Nats-Expected-Last-Subject-Sequence", "0") > s.maxPayload {
		return model.ErrTooLarge
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := eventKey{space, stream, id}
	if s.dead.stored[key] == 0 {
		s.dead.stored[key] = s.dead.add(space, func(uint64) []byte { return letter })
	}
	return nil
}

// ReadDead returns up to limit letters of a space after sequence after, or of all spaces.
func (s *deadStore) ReadDead(space string, after uint64, limit int) []model.DeadLetter {
	return s.letters(after, limit, func(d *model.DeadLetter) bool { return space == "" || d.Space == space })
}

// FindDead returns the letters about an event.
func (s *deadStore) FindDead(space, id string) []model.DeadLetter {
	return s.letters(0, 1<<30, func(d *model.DeadLetter) bool { return d.Space == space && d.Event == id })
}

// ListDead returns the names of the letters of a space, or of all spaces.
func (s *deadStore) ListDead(space string) (names []model.DeadName) {
	for _, d := range s.ReadDead(space, 0, 1<<30) {
		names = append(names, d.Name())
	}
	return names
}

func (s *deadStore) letters(after uint64, limit int, wanted func(*model.DeadLetter) bool) []model.DeadLetter {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []model.DeadLetter
	for i, data := range s.dead.messages {
		seq := uint64(i + 1)
		if seq <= after || len(found) == limit {
			continue
		}
		d, err := model.DecodeDead(data)
		if err != nil {
			panic(fmt.Sprintf("membus: a stored letter cannot be decoded: %v", err))
		}
		if d.Seq = seq; wanted(d) {
			found = append(found, *d)
		}
	}
	return found
}

func checkIfAny(what, name string) error {
	if name == "" {
		return nil
	}
	return model.CheckName(what, name)
}
