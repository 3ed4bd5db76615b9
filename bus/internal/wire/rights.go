package wire

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/model"
)

// UserInfo is a server's description of the user of a connection.
type UserInfo struct {
	User, Account string
	// Permissions are nil if everything is allowed.
	Permissions *struct{ Publish, Subscribe *SubjectRules }
}

// AskUser asks the server for the user of this connection and its permissions.
func (l *Link) AskUser(ctx context.Context) (*UserInfo, error) {
	m, err := l.NC.RequestWithContext(ctx, "$SYS.REQ.USER.INFO", nil)
	if err != nil {
		return nil, fmt.Errorf("ask the server for this user's rights ($SYS.REQ.USER.INFO): %w", err)
	}
	var reply struct{ Data UserInfo }
	if err := json.Unmarshal(m.Data, &reply); err != nil {
		return nil, fmt.Errorf("read what the server says of us: %w", err)
	}
	return &reply.Data, nil
}

// denial is a permissions violation that the server has reported.
type denial struct {
	at  time.Time
	why string
}

// LastDenial returns when the server last denied this user a subject, and which; the zero time if it never did.
func (l *Link) LastDenial() (at time.Time, why string) {
	if d := l.denied.Load(); d != nil {
		return d.at, d.why
	}
	return at, ""
}

// rightsPatience is how long a server may take to report a user's permissions until they count as unknown.
const rightsPatience = 3 * time.Second

// MayPublish returns an error if the server reports that this user may not publish to one of the subjects.
// A request to such a subject gets no answer, so its caller would wait without end. If the server
// does not report permissions, it returns nil.
func (l *Link) MayPublish(ctx context.Context, what, role string, subjects ...string) error {
	asking, cancel := context.WithTimeout(ctx, rightsPatience)
	defer cancel()
	u, err := l.AskUser(asking)
	if err != nil || u.Permissions == nil {
		return ctx.Err()
	}
	if lacks := u.Permissions.Publish.Lacks("publish", subjects); len(lacks) > 0 {
		return fmt.Errorf("%s needs the role %s: %w: user %s of account %s lacks %s (`settle permissions` prints which role may do what)",
			what, role, model.ErrForbidden, u.User, u.Account, fewOf(lacks))
	}
	return nil
}

// fewOf returns the first of the subjects that a user lacks.
func fewOf(lacks []string) string {
	const most = 3
	if len(lacks) > most {
		return strings.Join(lacks[:most], ", ") + fmt.Sprintf(" and %d more", len(lacks)-most)
	}
	return strings.Join(lacks, ", ")
}

// SubjectRules are permissions in the server's format.
type SubjectRules struct{ Allow, Deny []string }

// Lacks returns those of the subjects that are not wholly allowed.
func (r *SubjectRules) Lacks(what string, subjects []string) (lacks []string) {
	if r == nil {
		return nil
	}
	for _, s := range subjects {
		allowed := len(r.Allow) == 0 || slices.ContainsFunc(r.Allow, func(a string) bool { return covers(a, s) })
		denied := slices.ContainsFunc(r.Deny, func(d string) bool { return covers(d, s) })
		if !allowed || denied {
			lacks = append(lacks, what+" "+s)
		}
	}
	return lacks
}

// covers reports whether every subject of pattern b is one of pattern a.
func covers(a, b string) bool {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i, token := range as {
		switch {
		case token == ">":
			return len(bs) > i
		case i >= len(bs) || bs[i] == ">":
			return false
		case token != "*" && token != bs[i]:
			return false
		}
	}
	return len(as) == len(bs)
}
