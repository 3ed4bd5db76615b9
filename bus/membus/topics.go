package membus

import "github.com/settlehq/settle/model"

// topicStore holds the subscriptions to messages that no stream stores.
type topicStore struct {
	*data
	topics topics
}

// topics are the subjects that no stream stores: a message without a subscriber is lost.
type topics struct {
	leases  map[int]topic[model.Lease] // by partition
	rolls   topic[int]
	answers map[string]map[*answer]bool // by member id
}

func newTopics() topics {
	return topics{
		leases:  map[int]topic[model.Lease]{},
		rolls:   topic[int]{},
		answers: map[string]map[*answer]bool{},
	}
}

// topic is the set of listeners to one subject.
type topic[T any] map[*Subscription[T]]bool

func (t topic[T]) publish(v T) {
	// any order: every subscription gets its own copy
	for sub := range t {
		sub.posted = append(sub.posted, v)
		sub.grown.raise()
	}
}

// Subscription collects messages from its creation until it is canceled.
type Subscription[T any] struct {
	server *data
	topic  topic[T]
	posted []T
	grown  signal
}

// subscribe requires that the caller holds the lock.
func subscribe[T any](s *data, t topic[T]) *Subscription[T] {
	sub := &Subscription[T]{server: s, topic: t}
	t[sub] = true
	return sub
}

// Take removes and returns the collected messages; more is closed when there are more.
func (sub *Subscription[T]) Take() (posted []T, more <-chan struct{}) {
	sub.server.mu.Lock()
	defer sub.server.mu.Unlock()
	posted, sub.posted = sub.posted, nil
	return posted, sub.grown.wait()
}

// Cancel ends the subscription.
func (sub *Subscription[T]) Cancel() {
	sub.server.mu.Lock()
	defer sub.server.mu.Unlock()
	delete(sub.topic, sub)
}

// Observe publishes a lease to the partition of its space.
func (s *topicStore) Observe(l model.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.topics.leases[model.PartitionOf(l.Space, len(s.partitions))].publish(l)
}

// SubscribeLeases subscribes to the leases of a partition.
func (s *topicStore) SubscribeLeases(partition int) *Subscription[model.Lease] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.topics.leases[partition] == nil {
		s.topics.leases[partition] = topic[model.Lease]{}
	}
	return subscribe(s.data, s.topics.leases[partition])
}

// CallRoll asks the observers of spaces of a partition to renew their leases.
func (s *topicStore) CallRoll(partition int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.topics.rolls.publish(partition)
}

// SubscribeRollCalls subscribes to the roll calls of all partitions.
func (s *topicStore) SubscribeRollCalls() *Subscription[int] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return subscribe(s.data, s.topics.rolls)
}

// answer is a process that replies to pings while online returns true.
type answer struct{ online func() bool }

// Answer makes Answering return true for id whenever online does, until canceled. online must not call the
// server.
func (s *topicStore) Answer(id string, online func() bool) (cancel func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.topics.answers[id] == nil {
		s.topics.answers[id] = map[*answer]bool{}
	}
	a := &answer{online}
	s.topics.answers[id][a] = true
	return func() { s.removeAnswer(id, a) }
}

func (s *topicStore) removeAnswer(id string, a *answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.topics.answers[id], a)
}

// Answering reports whether a process replies to pings of id.
func (s *topicStore) Answering(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for a := range s.topics.answers[id] {
		if a.online() {
			return true
		}
	}
	return false
}

func (s *topicStore) subscribeChannel(c *channel) *Subscription[model.Part] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return subscribe(s.data, c.subs)
}

// publish sends a part, and reports whether there is a listener.
func (s *topicStore) publish(c *channel, p model.Part) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.subs.publish(p)
	return len(c.subs) > 0
}

// channel carries the parts of one answer. A part without a listener is lost, and the sender learns of that.
type channel struct {
	// key identifies the request to a Network.
	key  string
	subs topic[model.Part]
}
