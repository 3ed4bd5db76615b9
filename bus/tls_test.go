package bus_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/internal/testpki"
	"github.com/settlehq/settle/model"
)

// serveTLS starts a server with a certificate, and returns its URL. more is added to its tls block.
func serveTLS(t *testing.T, ca *testpki.Authority, p testpki.Pair, more string) string {
	t.Helper()
	return serve(t, fmt.Sprintf("tls { cert_file: %q, key_file: %q, ca_file: %q\n %s }", p.Cert, p.Key, ca.File, more))
}

// serve starts a server with a configuration, and returns its URL.
func serve(t *testing.T, config string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return natstest.StartServer(t, embedded.Config{ConfigFile: file, Listen: "127.0.0.1:0"}).ClientURL()
}

// Each way in which TLS rejects a client is an error with a remedy.
func TestTLS_ARefusalSaysWhatToDo(t *testing.T) {
	clearEnvironment(t)
	ca, other := testpki.NewAuthority(t), testpki.NewAuthority(t)
	plain := natstest.StartServer(t, embedded.Config{Listen: "127.0.0.1:0"}).ClientURL()
	good := serveTLS(t, ca, ca.Issue(t, "server", "127.0.0.1"), "")
	verified := serveTLS(t, ca, ca.Issue(t, "verified", "127.0.0.1"), "verify: true")
	client := func(p testpki.Pair) bus.Config {
		return bus.Config{URL: verified, CA: ca.File, Cert: p.Cert, Key: p.Key}
	}
	for name, c := range map[string]struct {
		cfg  bus.Config
		want string // "" if the connection is made
	}{
		"the authority is known":         {bus.Config{URL: good, CA: ca.File}, ""},
		"no authority is named":          {bus.Config{URL: good}, "NATS_CA"},
		"another authority is":           {bus.Config{URL: good, CA: other.File}, "NATS_CA"},
		"the file is missing":            {bus.Config{URL: good, CA: "/nowhere/ca.pem"}, "/nowhere/ca.pem: no such file or directory; check the path"},
		"the server has another name":    {bus.Config{URL: serveTLS(t, ca, ca.Issue(t, "named", "nats.example.com"), ""), CA: ca.File}, "connect to a name that the server's certificate is for"},
		"its certificate has expired":    {bus.Config{URL: serveTLS(t, ca, ca.IssueExpired(t, "old", "127.0.0.1"), ""), CA: ca.File}, "the server needs a new certificate"},
		"the server offers no TLS":       {bus.Config{URL: plain, CA: ca.File}, "the server offers no TLS"},
		"the client has a certificate":   {client(ca.Issue(t, "worker")), ""},
		"it has none":                    {bus.Config{URL: verified, CA: ca.File}, "NATS_CERT and NATS_KEY"},
		"it has that of another":         {client(other.Issue(t, "stranger")), "NATS_CERT and NATS_KEY"},
		"it has one that has expired":    {client(ca.IssueExpired(t, "expired")), "NATS_CERT and NATS_KEY"},
		"it has half of one":             {bus.Config{URL: verified, CA: ca.File, Cert: "c.pem"}, "NATS_CERT and NATS_KEY"},
		"the key is that of another one": {client(testpki.Pair{Cert: ca.Issue(t, "a").Cert, Key: ca.Issue(t, "b").Key}), "private key does not match"},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := bus.Dial(c.cfg)
			if err == nil {
				b.Kill()
			}
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v\nwant %q", err, c.want)
			}
		})
	}
}

// A process that may be started before its servers does not wait for one that refuses its certificate: time does not
// make it valid.
func TestTLS_AProcessDoesNotWaitForAServerThatRefusesItsCertificate(t *testing.T) {
	clearEnvironment(t)
	ca := testpki.NewAuthority(t)
	url := serveTLS(t, ca, ca.Issue(t, "server", "127.0.0.1"), "verify: true")
	_, err := bus.Connect(t.Context(), bus.Config{URL: url, CA: ca.File, AwaitServer: true})
	if err == nil || !strings.Contains(err.Error(), "NATS_CERT") || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// An event goes from a client at a leaf node through the hub to a stream and back, with TLS on each connection.
func TestTLS_FromALeafNode(t *testing.T) {
	clearEnvironment(t)
	ca := testpki.NewAuthority(t)
	p := ca.Issue(t, "server", "127.0.0.1")
	ports, err := natstest.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	block := fmt.Sprintf("tls { cert_file: %q, key_file: %q, ca_file: %q, verify: true }", p.Cert, p.Key, ca.File)
	hub := serve(t, fmt.Sprintf("server_name: hub\n%s\nleafnodes { listen: 127.0.0.1:%d\n %s }\njetstream { domain: hub }", block, ports[0], block))
	leaf := serve(t, fmt.Sprintf("server_name: leaf\n%s\nleafnodes { remotes: [ { url: \"tls://127.0.0.1:%d\"\n %s } ] }\njetstream { domain: leaf }", block, ports[0], block))

	c := ca.Issue(t, "client")
	cfg := bus.Config{URL: hub, CA: ca.File, Cert: c.Cert, Key: c.Key, AwaitServer: true}
	owner, err := bus.Connect(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(owner.Kill)
	if err := owner.Provision(t.Context()); err != nil {
		t.Fatal(err)
	}
	writeContext(t, "leaf", map[string]string{"url": leaf, "ca": ca.File, "cert": c.Cert, "key": c.Key, "jetstream_domain": "hub"})
	client, err := bus.Connect(t.Context(), bus.Config{Context: "leaf"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Kill)
	m := model.Message{Space: "edge", Stream: "add", ID: "one", Payload: []byte("1")}
	sent := make(chan error, 1)
	client.Send(m, func(_ model.SendResult, err error) { sent <- err })
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	if _, there, err := owner.FindEvent(t.Context(), "edge", "add", "one"); !there || err != nil {
		t.Errorf("the event is there: %v, %v", there, err)
	}
}
