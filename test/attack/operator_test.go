package attack_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/settlehq/settle/access"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/bus/roles"
	"github.com/settlehq/settle/internal/raced"
	"github.com/settlehq/settle/model"
)

// keyring makes keys and signs what they say.
type keyring struct{ t *testing.T }

func (k keyring) key(create func() (nkeys.KeyPair, error)) (key nkeys.KeyPair, public string) {
	k.t.Helper()
	key, err := create()
	if err == nil {
		public, err = key.PublicKey()
	}
	if err != nil {
		k.t.Fatal(err)
	}
	return key, public
}

func (k keyring) sign(c jwt.Claims, by nkeys.KeyPair) string {
	k.t.Helper()
	token, err := c.Encode(by)
	if err != nil {
		k.t.Fatal(err)
	}
	return token
}

// scope adds a signing key to an account: what it signs has the permissions of a role. They are too long for the token of a user, which is in the
// first line that a client sends.
func (k keyring) scope(of *jwt.AccountClaims, role *roles.Role) nkeys.KeyPair {
	k.t.Helper()
	key, public := k.key(nkeys.CreateAccount)
	s := jwt.NewUserScope()
	s.Key, s.Role = public, role.Name
	s.Template.Pub.Allow, s.Template.Sub.Allow = role.Publish, role.Subscribe
	of.SigningKeys.AddScopedSigner(s)
	return key
}

// user writes the credentials of a user of a role.
func (k keyring) user(dir string, role *roles.Role, account string, signer nkeys.KeyPair) (file string) {
	k.t.Helper()
	key, public := k.key(nkeys.CreateUser)
	c := jwt.NewUserClaims(public)
	c.Name, c.IssuerAccount = role.Name, account
	c.SetScoped(true)
	seed, err := key.Seed()
	if err != nil {
		k.t.Fatal(err)
	}
	text, err := jwt.FormatUserConfig(k.sign(c, signer), seed)
	if err != nil {
		k.t.Fatal(err)
	}
	file = filepath.Join(dir, role.Name+".creds")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		k.t.Fatal(err)
	}
	return file
}

// startOperatorMode starts a deployment whose accounts and users are signed tokens, with the border and the permissions of package roles. Exports
// need a token of the account of the streams.
func startOperatorMode(t *testing.T, principals ...string) *deployment {
	t.Helper()
	k, dir := keyring{t}, t.TempDir()
	operator, operatorID := k.key(nkeys.CreateOperator)
	_, systemID := k.key(nkeys.CreateAccount)
	streams, streamsID := k.key(nkeys.CreateAccount)
	_, clientsID := k.key(nkeys.CreateAccount)

	inside, outside := jwt.NewAccountClaims(streamsID), jwt.NewAccountClaims(clientsID)
	inside.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit}
	border := roles.BorderOf("settle", 8)
	for i := range border.Exports {
		e := &border.Exports[i]
		kind := jwt.Service
		if e.Messages {
			kind = jwt.Stream
		}
		export := &jwt.Export{Name: fmt.Sprint("settle", i), Subject: jwt.Subject(e.Subject), Type: kind, TokenReq: true}
		if !e.Messages {
			export.ResponseType = jwt.ResponseTypeSingleton
		}
		if e.Streamed {
			export.ResponseType = jwt.ResponseTypeStream
		}
		inside.Exports.Add(export)
		a := jwt.NewActivationClaims(clientsID)
		a.ImportSubject, a.ImportType = jwt.Subject(e.Subject), kind
		outside.Imports.Add(&jwt.Import{
			Name: fmt.Sprint("settle", i), Subject: jwt.Subject(e.Subject), Account: streamsID, Type: kind, LocalSubject: jwt.RenamingSubject(e.As), Token: k.sign(a, streams),
		})
	}
	d := &deployment{t: t, creds: map[string]string{}}
	all := roles.Of("settle", 8)
	for _, name := range principals {
		all = append(all, roles.Principal("settle", name))
	}
	for i := range all {
		of := inside
		if all[i].Outside {
			of = outside
		}
		d.creds[all[i].Name] = k.user(dir, &all[i], of.Subject, k.scope(of, &all[i]))
	}
	root := jwt.NewOperatorClaims(operatorID)
	root.SystemAccount = systemID
	conf := filepath.Join(dir, "server.conf")
	text := fmt.Sprintf("operator: %s\nsystem_account: %s\nresolver: MEMORY\nresolver_preload: { %s: %s, %s: %s, %s: %s }\n", k.sign(root, operator), systemID,
		systemID, k.sign(jwt.NewAccountClaims(systemID), operator), streamsID, k.sign(inside, operator), clientsID, k.sign(outside, operator))
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d.server = natstest.StartServer(t, embedded.Config{StoreDir: t.TempDir(), Fsync: embedded.FsyncInterval, Listen: ":0", ConfigFile: conf})
	d.run()
	return d
}

// With accounts and users that are signed tokens, the border is the same: clients, readers and principals work, and the adversary finds no breach.
func TestAttack_AccountsThatAreTokensHaveTheSameBorder(t *testing.T) {
	t.Parallel()
	d := startOperatorMode(t, "alice")
	alice := d.as("alice")
	if got := d.outcome(d.as(roles.Client), "", "cart-1", "e1"); got != model.Handled {
		t.Errorf("an event of a client is %s", got)
	}
	if got := d.outcome(alice, "alice", "cart-1", "e1"); got != model.Handled {
		t.Errorf("an event of alice is %s", got)
	}
	d.allow("alice", func(r *access.Rule) { r.Send = []string{"cart-*/add"} })
	tries := 0
	until(t, "the rule is known", func() bool {
		tries++
		return d.outcome(d.as(roles.Client), "", "cart-1", fmt.Sprintf("r%d", tries)) == model.Refused
	})
	if got := d.outcome(alice, "alice", "cart-1", "e2"); got != model.Handled {
		t.Errorf("an event of alice that a rule allows is %s", got)
	}
	users := []string{"alice", roles.Client, roles.Reader}
	users = users[:raced.Fewer(3, 3)] // the race detector makes each attempt slow, and attempts are all alike
	report := attackAs(t, d, users...)
	for _, b := range report.Breaches {
		t.Error(b)
	}
	if report.Attempts < 1000*len(users) || report.Refused < 100 {
		t.Errorf("%d attempts, of which %d were refused", report.Attempts, report.Refused)
	}
}
