package bus_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/model"
)

// authority is an operator of NATS with an account for Settle and the system account. Its server takes
// changes of the accounts while it runs.
type authority struct {
	t        *testing.T
	dir, url string
	operator nkeys.KeyPair
	account  nkeys.KeyPair
	claims   *jwt.AccountClaims
	system   *nats.Conn
	users    map[string]string // their public keys
}

func newKey(t *testing.T, create func() (nkeys.KeyPair, error)) (key nkeys.KeyPair, public string) {
	t.Helper()
	key, err := create()
	if err != nil {
		t.Fatal(err)
	}
	if public, err = key.PublicKey(); err != nil {
		t.Fatal(err)
	}
	return key, public
}

func (a *authority) sign(c jwt.Claims, by nkeys.KeyPair) string {
	a.t.Helper()
	token, err := c.Encode(by)
	if err != nil {
		a.t.Fatal(err)
	}
	return token
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir(), users: map[string]string{}}
	var public string
	a.operator, public = newKey(t, nkeys.CreateOperator)
	operator := jwt.NewOperatorClaims(public)
	system, systemID := newKey(t, nkeys.CreateAccount)
	operator.SystemAccount = systemID
	a.account, public = newKey(t, nkeys.CreateAccount)
	a.claims = jwt.NewAccountClaims(public)
	a.claims.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit}
	config := fmt.Sprintf("operator: %s\nsystem_account: %s\nresolver: { type: full, dir: %q }\nresolver_preload: { %s: %s, %s: %s }\n",
		a.sign(operator, a.operator), systemID, filepath.Join(a.dir, "jwt"),
		systemID, a.sign(jwt.NewAccountClaims(systemID), a.operator), public, a.sign(a.claims, a.operator))
	file := filepath.Join(a.dir, "nats.conf")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	a.url = natstest.StartServer(t, embedded.Config{ConfigFile: file, Listen: "127.0.0.1:0"}).ClientURL()
	creds := a.issue("system", system, 0)
	var err error
	if a.system, err = nats.Connect(a.url, nats.UserCredentials(creds)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.system.Close)
	return a
}

// issue writes the credentials of a new user of an account to a file, and returns its path. They expire after a while,
// or never for 0.
func (a *authority) issue(name string, account nkeys.KeyPair, validity time.Duration) (file string) {
	a.t.Helper()
	user, public := newKey(a.t, nkeys.CreateUser)
	a.users[name] = public
	claims := jwt.NewUserClaims(public)
	if validity > 0 {
		claims.Expires = time.Now().Add(validity).Unix()
	}
	seed, err := user.Seed()
	if err != nil {
		a.t.Fatal(err)
	}
	text, err := jwt.FormatUserConfig(a.sign(claims, account), seed)
	if err != nil {
		a.t.Fatal(err)
	}
	file = filepath.Join(a.dir, name+".creds")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		a.t.Fatal(err)
	}
	return file
}

func (a *authority) connect(name string, log slog.Handler, validity time.Duration) *bus.Bus {
	a.t.Helper()
	b, err := bus.Connect(a.t.Context(), bus.Config{
		URL: a.url, Creds: a.issue(name, a.account, validity), Logger: slog.New(log),
		Options: []nats.Option{nats.ReconnectWait(50 * time.Millisecond), nats.ReconnectJitter(0, 0)},
	})
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(b.Kill)
	return b
}

// revoke ends the validity of all credentials of a user, whose connections the server closes.
func (a *authority) revoke(public string) {
	a.t.Helper()
	a.claims.Revoke(public)
	reply, err := a.system.Request("$SYS.REQ.CLAIMS.UPDATE", []byte(a.sign(a.claims, a.operator)), 5*time.Second)
	if err != nil || !strings.Contains(string(reply.Data), `"code":200`) {
		a.t.Fatalf("update the account: %v, %s", err, reply.Data)
	}
}

// lines is a logger that a test can wait for.
type lines struct{ written chan string }

func (l lines) Write(p []byte) (int, error) {
	l.written <- string(p)
	return len(p), nil
}

// await returns when a line with the text is written.
func (l lines) await(t *testing.T, text string) {
	t.Helper()
	limit := time.After(5 * time.Minute)
	for {
		select {
		case line := <-l.written:
			if strings.Contains(line, text) {
				return
			}
		case <-limit:
			t.Fatalf("no line of the log says %q", text)
		}
	}
}

// Credentials end while events are being sent: the log says what to do, and with new ones in the same file the
// process continues; each event is in its lane once.
func TestCredentials_AreReplacedInFlight(t *testing.T) {
	clearEnvironment(t)
	for name, end := range map[string]struct {
		validity time.Duration
		by       func(a *authority, user string)
		says     string
	}{
		"revoked": {0, (*authority).revoke, "authentication revoked"},
		"expired": {3 * time.Second, func(*authority, string) {}, "authentication expired"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAuthority(t)
			owner := a.connect("owner", slog.DiscardHandler, 0)
			if err := owner.Provision(t.Context()); err != nil {
				t.Fatal(err)
			}
			log := lines{make(chan string, 1000)}
			client := a.connect("client", slog.NewTextHandler(log, nil), end.validity)
			sent := make(chan error, 3)
			send := func(id string) {
				client.Send(model.Message{Space: "cart", Stream: "add", ID: id}, func(_ model.SendResult, err error) { sent <- err })
			}
			send("before")
			if err := <-sent; err != nil {
				t.Fatal(err)
			}
			end.by(a, a.users["client"])
			log.await(t, end.says)
			send("while")
			log.await(t, "NATS_CREDS")
			a.issue("client", a.account, 0)
			send("after")
			for range 2 {
				if err := <-sent; err != nil {
					t.Error(err)
				}
			}
			found, err := owner.ReadLane(t.Context(), "cart", 0, 10)
			if err != nil || len(found) != 3 {
				t.Errorf("%d events in the lane, %v", len(found), err)
			}
		})
	}
}

// Credentials that the server does not accept end the start of a process, which would wait for a server that is away.
func TestCredentials_AProcessDoesNotWaitForAServerThatRefusesThem(t *testing.T) {
	clearEnvironment(t)
	a, other := newAuthority(t), newAuthority(t)
	creds := other.issue("stranger", other.account, 0)
	_, err := bus.Connect(t.Context(), bus.Config{URL: a.url, Creds: creds, AwaitServer: true})
	if !errors.Is(err, nats.ErrAuthorization) || !strings.Contains(err.Error(), "NATS_CREDS") {
		t.Errorf("got %v", err)
	}
}
