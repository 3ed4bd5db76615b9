package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/model"
)

// userInfo is a server's description of the user of a connection.
type userInfo struct {
	User, Account string
	// Permissions are nil if everything is allowed.
	Permissions *struct{ Publish, Subscribe *subjectRules }
}

// askUser asks the server for the user of this connection and its permissions.
func (b *Bus) askUser(ctx context.Context) (*userInfo, error) {
	m, err := b.nc.RequestWithContext(ctx, "$SYS.REQ.USER.INFO", nil)
	if err != nil {
		return nil, fmt.Errorf("ask the server who we are ($SYS.REQ.USER.INFO): %w", err)
	}
	var reply struct{ Data userInfo }
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
func (b *Bus) LastDenial() (at time.Time, why string) {
	if d := b.denied.Load(); d != nil {
		return d.at, d.why
	}
	return at, ""
}

// rightsPatience is how long a server may take to report a user's permissions until they count as unknown.
const rightsPatience = 3 * time.Second

// mayPublish returns an error if the server reports that this user may not publish to one of the subjects.
// A request to such a subject gets no answer, so its caller would wait without end. If the server
// does not report permissions, it returns nil.
func (b *Bus) mayPublish(ctx context.Context, what, role string, subjects ...string) error {
	asking, cancel := context.WithTimeout(ctx, rightsPatience)
	defer cancel()
	u, err := b.askUser(asking)
	if err != nil || u.Permissions == nil {
		return ctx.Err()
	}
	if lacks := u.Permissions.Publish.lacks("publish", subjects); len(lacks) > 0 {
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

// MayCommit returns model.ErrForbidden if the server reports that this user may not append to the log of a
// space, and nil if it may, or if that is not known.
func (b *Bus) MayCommit(ctx context.Context, space string) error {
	if b.commits.Load() {
		return nil
	}
	err := b.mayPublish(ctx, "writing to a space", RoleWorker, b.names.log(model.PartitionOf(space, b.Partitions()), space))
	b.commits.Store(err == nil)
	return err
}

// MayProvision returns model.ErrForbidden if the server reports that this user may not create the streams of a
// deployment, and nil if it may, or if that is not known.
func (b *Bus) MayProvision(ctx context.Context) error {
	var subjects []string
	for _, a := range b.assets(b.Partitions()) {
		subjects = append(subjects, b.api+"STREAM.CREATE."+a.config.Name)
	}
	return b.mayPublish(ctx, "creating a deployment", RoleOperator, subjects...)
}

// subjectRules are permissions in the server's format.
type subjectRules struct{ Allow, Deny []string }

// lacks returns those of the subjects that are not wholly allowed.
func (r *subjectRules) lacks(what string, subjects []string) (lacks []string) {
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
