package bus

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/bus/roles"
)

// inboxPatience is how long the server may take to report whether a subscription is allowed.
const inboxPatience = 5 * time.Second

// findInbox has the connection use inboxes that its user may subscribe to, unless a prefix was configured: those that all users share,
// or else the user's own, or those of readers, or of performers. Without it, a request would wait for an answer that cannot arrive.
func findInbox(nc *nats.Conn) error {
	may, err := maySubscribe(nc)
	if may || err != nil {
		return err
	}
	if set := nc.Opts.InboxPrefix; set != "" {
		return fmt.Errorf("this user may not subscribe to %s.>, which is its inbox (bus.Config.InboxPrefix, NATS_INBOX_PREFIX, or inbox_prefix of the nats context), and no answer would reach it", set)
	}
	own := ""
	for _, name := range []string{userOf(nc), roles.Reader, roles.Performer} {
		if name == "" || strings.ContainsAny(name, ".*> \t\r\n") {
			continue
		}
		nc.Opts.InboxPrefix = wire.OwnInbox(name)
		if may, err := maySubscribe(nc); may || err != nil {
			return err
		}
		own += " nor to " + nc.Opts.InboxPrefix + ".>"
	}
	return fmt.Errorf("this user may subscribe neither to _INBOX.>%s, and no answer would reach it: set bus.Config.InboxPrefix, NATS_INBOX_PREFIX or the inbox_prefix of the nats context to what its permissions have", own)
}

// maySubscribe reports whether the user may subscribe to an inbox.
func maySubscribe(nc *nats.Conn) (bool, error) {
	report := nc.Opts.AsyncErrorCB
	nc.SetErrorHandler(func(nc *nats.Conn, sub *nats.Subscription, err error) {
		if !errors.Is(err, nats.ErrPermissionViolation) {
			report(nc, sub, err)
		}
	})
	defer nc.SetErrorHandler(report)
	before := nc.LastError()
	sub, err := nc.SubscribeSync(nc.NewInbox())
	if err != nil {
		return false, err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only if the server has refused it, or the connection is closed
	if err := nc.FlushTimeout(inboxPatience); err != nil {
		return false, fmt.Errorf("ask the server whether this user may subscribe to its inbox: %w", err)
	}
	// The server reports a refusal before it answers the flush.
	after := nc.LastError()
	return after == before || !errors.Is(after, nats.ErrPermissionViolation), nil //nolint:errorlint // is it the very same?
}

// userOf returns the name of the user of a connection, "" if it is not known.
func userOf(nc *nats.Conn) string {
	if nc.Opts.User != "" {
		return nc.Opts.User
	}
	if u, err := url.Parse(nc.ConnectedUrl()); err == nil && u.User.Username() != "" {
		return u.User.Username()
	}
	for _, s := range nc.Opts.Servers {
		if u, err := url.Parse(s); err == nil && u.User.Username() != "" {
			return u.User.Username()
		}
	}
	if nc.Opts.UserJWT == nil {
		return ""
	}
	token, err := nc.Opts.UserJWT()
	parts := strings.Split(token, ".")
	if err != nil || len(parts) != 3 {
		return ""
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Name string `json:"name"`
	}
	if err != nil || json.Unmarshal(text, &claims) != nil {
		return ""
	}
	return claims.Name
}
