package membus

import (
	"fmt"
	"time"

	"github.com/settlehq/settle/model"
)

// Server holds the data of a deployment. Every method is one atomic step that returns what a JetStream server
// would answer. It is safe for concurrent use, and starts no goroutine.
type Server struct {
	*data
	laneStore
	logStore
	stateStore
	deadStore
	recordStore
	memberStore
	topicStore
	serviceStore
	clients map[connection]bool
}

// NewServer returns an empty deployment.
func NewServer(c Config) *Server {
	if c.Partitions < 1 {
		panic(fmt.Sprintf("membus: %d partitions; at least 1 is needed", c.Partitions))
	}
	if c.MaxPayload == 0 {
		c.MaxPayload = 1 << 20
	}
	if c.Horizon == 0 {
		c.Horizon = model.DefaultHorizon
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	d := &data{maxPayload: c.MaxPayload, horizon: c.Horizon, now: c.Now}
	s := &Server{
		data: d, laneStore: laneStore{data: d}, logStore: logStore{d}, stateStore: stateStore{d}, deadStore: deadStore{d, newDead()}, recordStore: recordStore{d, newRecords()},
		memberStore: memberStore{d, newMembers()}, topicStore: topicStore{d, newTopics()}, serviceStore: serviceStore{d, services{}}, clients: map[connection]bool{},
	}
	for range c.Partitions {
		d.partitions = append(d.partitions, newPartition())
	}
	return s
}

// Disconnect disconnects all clients, as a restart of the server does.
func (s *Server) Disconnect() {
	for _, b := range s.connected() {
		b.Disconnect()
	}
}

// Reconnect undoes Disconnect.
func (s *Server) Reconnect() {
	for _, b := range s.connected() {
		b.Reconnect()
	}
}

func (s *Server) connected() []connection {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []connection
	// any order: each is independent of the others
	for b := range s.clients {
		all = append(all, b)
	}
	return all
}

// connection is a client that is connected to a Server.
type connection interface {
	Disconnect()
	Reconnect()
}
