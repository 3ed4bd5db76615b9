package membus

import (
	"slices"

	"github.com/settlehq/settle/model"
)

// services are the serving processes by endpoint, each list in the order in which they registered.
type services map[string][]*served

// served is an endpoint that one client serves.
type served struct {
	*model.Endpoint
	online func() bool                 // whether the client can answer
	outlet func(*channel) model.Outlet // creates the client's outlet for the parts of an answer
}

// serviceStore holds the endpoints that clients serve.
type serviceStore struct {
	*data
	services services
}

// offer registers an endpoint until cancel is called.
func (s *serviceStore) offer(e *served) (cancel func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.services[e.Name] = append(s.services[e.Name], e)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.services[e.Name] = slices.DeleteFunc(s.services[e.Name], func(o *served) bool { return o == e })
	}
}

// choose returns the first process that can answer, and moves it to the end.
func (s *serviceStore) choose(endpoint string) *served {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.services[endpoint]
	for i, e := range list {
		if e.online() {
			s.services[endpoint] = append(slices.Delete(list, i, i+1), e)
			return e
		}
	}
	return nil
}

// keepFirst keeps the first reply.
func keepFirst(replies chan<- reply, r reply) {
	select {
	case replies <- r:
	default:
	}
}
