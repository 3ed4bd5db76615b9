package bus

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/synadia-io/orbit.go/natscontext"

	"github.com/settlehq/settle/bus/internal/wire"
)

// Connection is how to reach a server: a nats context, and settings that replace parts of
// it. An empty field keeps the context's value.
type Connection struct {
	// Context is a context's name or the absolute path of its file; "" is the
	// selected one, if there is one.
	Context        string
	URL            string
	Creds, NKey    string
	User, Password string
	Token          string
	CA, Cert, Key  string
	InboxPrefix    string
	embedded       InProcess
}

// ResolveConnection decides how to connect, as the nats command line tool does:
// each setting is taken from the configuration (the flags of a program), else
// from the environment, else from the context; and the context itself is the one
// named by the configuration, else by NATS_CONTEXT, else the selected one.
//
// The environment is NATS_URL, NATS_CONTEXT, NATS_CREDS, NATS_NKEY, NATS_USER,
// NATS_PASSWORD, NATS_TOKEN, NATS_CA, NATS_CERT, NATS_KEY and NATS_INBOX_PREFIX; getenv is
// os.Getenv outside of tests.
func ResolveConnection(c Config, getenv func(string) string) (Connection, error) {
	if c.Server != nil {
		return Connection{embedded: c.Server, Creds: c.Creds, NKey: c.NKey, User: c.User, Password: c.Password, Token: c.Token, InboxPrefix: c.InboxPrefix}, nil
	}
	first := func(flag, env string) string {
		if flag != "" {
			return flag
		}
		return getenv(env)
	}
	conn := Connection{
		Context: first(c.Context, "NATS_CONTEXT"),
		URL:     first(c.URL, "NATS_URL"),
		Creds:   first(c.Creds, "NATS_CREDS"),
		NKey:    first(c.NKey, "NATS_NKEY"),
		User:    first(c.User, "NATS_USER"),
		Token:   first(c.Token, "NATS_TOKEN"),
		CA:      first(c.CA, "NATS_CA"),
		Cert:    first(c.Cert, "NATS_CERT"),
		Key:     first(c.Key, "NATS_KEY"),

		InboxPrefix: first(c.InboxPrefix, "NATS_INBOX_PREFIX"),
	}
	conn.Password = first(c.Password, "NATS_PASSWORD")
	return conn, conn.check()
}

func (c Connection) check() error {
	if (c.Cert == "") != (c.Key == "") {
		return errors.New("a client certificate needs both its certificate and its key: set bus.Config.Cert and Key, or NATS_CERT and NATS_KEY")
	}
	if c.Password != "" && c.User == "" {
		return errors.New("there is a password but no user: set bus.Config.User or NATS_USER")
	}
	return nil
}

// ErrNoLogin reports that an embedded server has users, and that the connection names none of them.
var ErrNoLogin = errors.New("the server's configuration has users, but not this one")

// connect dials. The given options win over the context's.
func (c Connection) connect(options ...nats.Option) (*nats.Conn, wire.APISettings, error) {
	if c.embedded != nil {
		own := func(o *nats.Options) error {
			return errors.Join(apply(o, c.embedded.ConnOption()), apply(o, append(c.login(o), c.inboxes()...)...))
		}
		nc, err := nats.Connect("", append([]nats.Option{own}, options...)...)
		if errors.Is(err, nats.ErrAuthorization) || errors.Is(err, io.ErrClosedPipe) { // it hangs up either way
			err = fmt.Errorf("%w: %w", ErrNoLogin, err)
		}
		return nc, wire.APISettings{}, err
	}
	var tried []string
	override := func(o *nats.Options) error {
		err := c.override(o)
		tried = o.Servers
		return err
	}
	nc, s, err := natscontext.Connect(c.Context, append([]nats.Option{override}, options...)...)
	if err != nil {
		return nil, wire.APISettings{}, fmt.Errorf("connect to NATS%s: %w; %s", c.where(tried), err, wire.Remedy(err))
	}
	return nc, wire.APISettings{Domain: s.JSDomain, APIPrefix: s.JSAPIPrefix}, nil
}

// where names the servers that were tried, and the source of their addresses.
func (c Connection) where(tried []string) (text string) {
	for i, s := range tried {
		if u, err := url.Parse(s); err == nil {
			tried[i] = u.Redacted()
		}
	}
	if len(tried) > 0 {
		text = " at " + strings.Join(tried, ", ")
	}
	switch {
	case c.URL != "" && c.URL == os.Getenv("NATS_URL"):
		return text + " (NATS_URL)"
	case c.URL != "":
		return text
	case c.Context != "":
		return text + " (nats context " + c.Context + ")"
	case len(tried) == 1 && tried[0] == nats.DefaultURL:
		return text + " (the default, since no address was given)"
	}
	return text + " (the selected nats context)"
}

// override replaces the context's settings by the connection's own. One way
// of logging in replaces every other.
func (c Connection) override(o *nats.Options) error {
	if c.URL != "" {
		o.Url, o.Servers = "", splitURLs(c.URL)
	}
	if len(o.Servers) == 0 || (len(o.Servers) == 1 && o.Servers[0] == "") {
		o.Servers = []string{nats.DefaultURL}
	}
	return apply(o, slices.Concat(c.login(o), c.tls(), c.inboxes())...)
}

func apply(o *nats.Options, options ...nats.Option) error {
	for _, option := range options {
		if err := option(o); err != nil {
			return err
		}
	}
	return nil
}

func splitURLs(urls string) []string {
	split := strings.Split(urls, ",")
	for i := range split {
		split[i] = strings.TrimSpace(split[i])
	}
	return split
}

// login returns the options to log in with, after clearing those of the context,
// or none if the connection has no login.
func (c Connection) login(o *nats.Options) []nats.Option {
	if c.User == "" && c.Token == "" && c.Creds == "" && c.NKey == "" {
		return nil
	}
	o.User, o.Password, o.Token = "", "", ""
	o.UserJWT, o.SignatureCB, o.Nkey = nil, nil, ""
	var options []nats.Option
	if c.User != "" {
		options = append(options, nats.UserInfo(c.User, c.Password))
	}
	if c.Token != "" {
		options = append(options, nats.Token(c.Token))
	}
	if c.Creds != "" {
		options = append(options, nats.UserCredentials(c.Creds))
	}
	if c.NKey != "" {
		options = append(options, nkeyOption(c.NKey))
	}
	return options
}

// inboxes returns the option of the prefix of inboxes.
func (c Connection) inboxes() []nats.Option {
	if c.InboxPrefix == "" {
		return nil
	}
	return []nats.Option{nats.CustomInboxPrefix(c.InboxPrefix)}
}

func nkeyOption(path string) nats.Option {
	return func(o *nats.Options) error {
		option, err := nats.NkeyOptionFromSeed(path)
		if err != nil {
			return fmt.Errorf("nkey %s: %w", path, err)
		}
		return option(o)
	}
}

func (c Connection) tls() []nats.Option {
	var options []nats.Option
	if c.CA != "" {
		options = append(options, nats.RootCAs(c.CA))
	}
	if c.Cert != "" {
		options = append(options, nats.ClientCert(c.Cert, c.Key))
	}
	return options
}
