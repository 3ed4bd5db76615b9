package gateway

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/settlehq/settle/access"
	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/model"
)

// caller is the origin of a request, with its rights.
type caller struct {
	// principal is nil for the holder of Config.Token, which reads all documents, and on a loopback address without any
	// token, where everything is allowed.
	principal  *principal
	sends      bool // of a caller without a principal
	operator   bool // Config.Operator, of a caller without a principal
	rules      *access.Rules
	usage      *usage
	reidentify func() *caller // identifies the origin of the request anew
}

// name returns the name of the principal, "" for none.
func (c *caller) name() string {
	if c.principal == nil {
		return ""
	}
	return c.principal.Name
}

// ruled returns the name that the rules of the deployment are asked about.
func (c *caller) ruled() string {
	if c.principal == nil && c.operator {
		return model.Operator
	}
	return c.name()
}

// asRules reports whether the entry of the file leaves the rights of its principal to the rules of the deployment.
func (c *caller) asRules() bool {
	return c.rules.Closed() && c.principal.Send == nil && c.principal.Read == nil
}

// mayRead returns why the caller may not read a document, "" if it may.
func (c *caller) mayRead(space, document string) string {
	if err := c.rules.MayRead(c.ruled(), space, document); err != nil {
		return err.Error()
	}
	if c.principal == nil || c.asRules() || may(c.principal.Read, space, document) {
		return ""
	}
	return fmt.Sprintf("principal %s may not read document %s of space %s", c.principal.Name, document, space)
}

// mayReadAll returns why the caller may not read all documents of a space, "" if it may: an answer to a question names the values of many.
func (c *caller) mayReadAll(space string) string {
	if err := c.rules.MayReadAll(c.ruled(), space); err != nil {
		return err.Error()
	}
	if c.principal == nil || c.asRules() || mayAll(c.principal.Read, space) {
		return ""
	}
	return fmt.Sprintf("principal %s may not ask about space %s: that needs the right to read %s/*", c.principal.Name, space, space)
}

// mayReadEverything returns why the caller may not read all documents of all spaces, "" if it may.
func (c *caller) mayReadEverything() string {
	if err := c.rules.MayReadEverything(c.ruled()); err != nil {
		return err.Error()
	}
	if c.principal == nil || c.asRules() || slices.Contains(c.principal.Read, "*/*") {
		return ""
	}
	return fmt.Sprintf("principal %s may not ask about all spaces: that needs the right to read */*", c.principal.Name)
}

// stillReads returns an error once the caller of an open watch may no longer read the document: its token has expired or was withdrawn, or
// a rule was changed. It checks twice a second at most; a watch has a message in each second.
func (c *caller) stillReads(space, document string) func() error {
	checked := time.Now()
	return func() error {
		if time.Since(checked) < recheck {
			return nil
		}
		checked = time.Now()
		now := c.reidentify()
		if now == nil || now.name() != c.name() {
			return &model.ServiceError{Code: http.StatusUnauthorized, Text: endedToken} // the client may have another one
		}
		if refused := now.mayRead(space, document); refused != "" {
			return &model.ServiceError{Code: model.CodeForbidden, Text: refused}
		}
		return nil
	}
}

const endedToken = "the token is no longer valid"

// recheck is how often the rights of an open watch are checked.
const recheck = live.Heartbeat / 2

// maySend returns why the caller may not send events of a stream to a space, "" if it may.
func (c *caller) maySend(space, stream string) string {
	switch {
	case c.principal == nil && !c.sends:
		return "the token of the gateway gives access to documents only; sending events needs a principal of the file of principals (--http-principals)"
	case c.rules.MaySend(c.ruled(), space, stream) != nil:
		return c.rules.MaySend(c.ruled(), space, stream).Error()
	case c.principal == nil || c.asRules() || may(c.principal.Send, space, stream):
		return ""
	}
	return fmt.Sprintf("principal %s may not send events of stream %s to space %s", c.principal.Name, stream, space)
}

// usage is what a principal uses at the moment.
type usage struct {
	rate *rate.Limiter

	mu                         sync.Mutex
	requests, watches, sockets int
}

// begin counts a request of the caller until end is called, or returns why it is one too many.
func (c *caller) begin(watch bool) (end func(), tooMany string) {
	if c.principal == nil {
		return func() {}, ""
	}
	u := c.usage
	open, limit, what := &u.requests, c.principal.AtATime, "requests at a time"
	if watch {
		open, limit, what = &u.watches, c.principal.Watches, "open watches"
	}
	return c.count(open, limit, what)
}

// beginSocket counts a socket until end is called, or returns why it is one too many. A principal has as many as watches: it needs no more.
func (c *caller) beginSocket() (end func(), tooMany string) {
	if c.principal == nil {
		return func() {}, ""
	}
	return c.count(&c.usage.sockets, c.principal.Watches, "open sockets")
}

// count counts one more of what a principal has open.
func (c *caller) count(open *int, limit int, what string) (end func(), tooMany string) {
	u := c.usage
	if !u.rate.Allow() {
		return nil, fmt.Sprintf("principal %s makes more than %v requests per second", c.principal.Name, c.principal.Rate)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if *open >= limit {
		return nil, fmt.Sprintf("principal %s has %d %s, which is its limit", c.principal.Name, *open, what)
	}
	*open++
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		*open--
	}, ""
}

type callerKey struct{}

// within returns the request with its caller, for the handlers behind the guard.
func (c *caller) within(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), callerKey{}, c))
}

// callerOf returns the caller of a request that the guard has passed on.
func callerOf(r *http.Request) *caller { return r.Context().Value(callerKey{}).(*caller) }

// limited answers a request of a caller that has the right to it, unless it is one too many.
func limited(w http.ResponseWriter, r *http.Request, refused string, watch bool, answer func()) {
	if refused != "" {
		fail(w, http.StatusForbidden, refused)
		return
	}
	end, tooMany := callerOf(r).begin(watch)
	if tooMany != "" {
		w.Header().Set("Retry-After", "1")
		fail(w, http.StatusTooManyRequests, tooMany)
		return
	}
	defer end()
	answer()
}
