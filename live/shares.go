package live

import (
	"fmt"

	"github.com/settlehq/settle/model"
)

// share is what the requests of one principal use of a server.
type share struct{ watches, gets int }

// begin counts a watch or a get of a principal, which may have only a part of what the server has, until end is called. Requests
// without a principal have the limits of the server only.
func (s *Server) begin(principal string, watch bool) (end func(), err error) {
	if principal == "" {
		return func() {}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.shares[principal]
	if of == nil {
		of = &share{}
	}
	n, limit, what := &of.gets, s.cfg.MaxGetsEach, "gets in flight"
	if watch {
		n, limit, what = &of.watches, s.cfg.MaxWatchesEach, "live queries"
	}
	if *n >= limit {
		return nil, &model.ServiceError{Code: model.CodeUnavailable, Text: fmt.Sprintf("principal %s has %d %s at this worker, its limit", principal, *n, what)}
	}
	*n++
	s.shares[principal] = of
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if *n--; *of == (share{}) {
			delete(s.shares, principal)
		}
	}, nil
}
