package attack_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/bus/roles"
	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/internal/leaks"
	"github.com/settlehq/settle/internal/parallel"
	"github.com/settlehq/settle/worker"
)

// patience bounds every wait; only a failing test reaches it.
const patience = 2 * time.Minute

func TestMain(m *testing.M) {
	for _, role := range []string{roles.Worker, roles.Coordinator, roles.Client, roles.Reader, roles.Backup, roles.Operator, roles.Administrator, roles.Performer, "system"} {
		if err := os.Setenv("SETTLE_"+strings.ToUpper(role)+"_PASSWORD", role+"1"); err != nil {
			panic(err)
		}
	}
	parallel.Allow()
	leaks.VerifyTestMain(m)
}

// deployment is a server with the users of deploy/nats, perhaps weakened, and a worker and a coordinator.
type deployment struct {
	t      *testing.T
	server *embedded.Server
	creds  map[string]string // files of credentials by user, where the server has no passwords
	worker *worker.Worker
	admin  *bus.Bus
}

// start starts one, with the files of deploy/nats in which each old text is replaced by the new one that follows it.
func start(t *testing.T, weaken ...string) *deployment {
	t.Helper()
	dir := t.TempDir()
	found := make([]bool, len(weaken)/2)
	for _, name := range []string{"users.conf", "permissions.conf"} {
		b, err := os.ReadFile(filepath.Join("..", "..", "deploy", "nats", name))
		if err != nil {
			t.Fatal(err)
		}
		text := string(b)
		for i := 0; i < len(weaken); i += 2 {
			found[i/2] = found[i/2] || strings.Contains(text, weaken[i])
			text = strings.Replace(text, weaken[i], weaken[i+1], 1)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i, is := range found {
		if !is {
			t.Fatalf("the files have no %q", weaken[2*i])
		}
	}
	conf := filepath.Join(dir, "server.conf")
	if err := os.WriteFile(conf, []byte("include ./users.conf\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := &deployment{t: t, server: natstest.StartServer(t, embedded.Config{StoreDir: t.TempDir(), Fsync: embedded.FsyncInterval, Listen: ":0", ConfigFile: conf})}
	d.run()
	return d
}

// run creates the streams, and starts a worker and a coordinator.
func (d *deployment) run() {
	t := d.t
	t.Helper()
	d.admin = d.as(roles.Administrator)
	d.must(d.admin.Provision(t.Context()))
	w, err := settle.StartWorker(t.Context(), d.as(roles.Worker), settle.WorkerConfig{ID: "w1", Programs: settle.Always(shop())})
	d.must(err)
	t.Cleanup(w.Kill)
	d.worker = w
	c := coordinator.New(d.as(roles.Coordinator), coordinator.Config{Save: 50 * time.Millisecond})
	c.Start()
	t.Cleanup(c.Stop)
}

func (d *deployment) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// as connects a process.
func (d *deployment) as(role string) *bus.Bus {
	d.t.Helper()
	cfg := bus.Config{URL: d.server.ClientURL(), User: role, Password: role + "1", Name: role + "/x"}
	if d.creds != nil {
		cfg.User, cfg.Password, cfg.Creds = "", "", d.creds[role]
	}
	b, err := bus.Connect(d.t.Context(), cfg)
	d.must(err)
	d.t.Cleanup(b.Kill)
	return b
}

// attacker connects a user that is not trusted.
func (d *deployment) attacker(user string) *nats.Conn {
	d.t.Helper()
	quiet := nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})
	options := []nats.Option{nats.UserInfo(user, user+"1"), quiet}
	if d.creds != nil {
		options[0] = nats.UserCredentials(d.creds[user])
	}
	if user != roles.Client {
		options = append(options, nats.CustomInboxPrefix("_INBOX_"+user))
	}
	nc, err := nats.Connect(d.server.ClientURL(), options...)
	d.must(err)
	d.t.Cleanup(nc.Close)
	return nc
}

var mail = settle.NewAction[string, string]("mail")

// shop returns a program that counts, sends to other spaces, and works outside.
func shop() *settle.Program {
	p := settle.NewProgram("shop")
	mail.Perform(p, func(ctx context.Context, _, text string) (string, error) {
		if mail.AttemptOf(ctx).Number == 1 { // it is reported, too, and counted
			return "", errors.New("busy")
		}
		return text + " sent", nil
	}, settle.Backoff(time.Millisecond, time.Millisecond))
	mail.Done(p, func(tx *settle.Tx, t settle.Task[string, string]) error {
		tx.Set("mailed", t.Out)
		return t.Err
	})
	settle.NewStream[int]("credit").Internal().Handle(p, func(tx *settle.Tx, n int) error {
		tx.Set("credit", n)
		return nil
	})
	return p.
		Handle("order", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
			mail.Start(tx, ev.ID, "it is")
			return settle.Value{}, nil
		}).
		Handle("add", func(tx *settle.Tx, _ *settle.Event) (settle.Value, error) {
			n, _ := tx.Get("n").AsInt()
			tx.Set("n", n+1)
			return tx.Get("n"), nil
		}).
		Handle("pass", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
			to, _ := ev.Payload.AsString()
			tx.Send(to, "add", nil)
			return settle.Value{}, nil
		})
}

// count returns a document of a space.
func (d *deployment) count(b *bus.Bus, space string) string {
	d.t.Helper()
	c, err := settle.NewClient(b, settle.ClientConfig{ID: "look"})
	d.must(err)
	defer c.Close()
	v, _, err := c.Space(space).Get(d.t.Context(), "n")
	d.must(err)
	return fmt.Sprint(v)
}

// until waits for something that is about to happen.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for !ok() {
		select {
		case <-look.C:
		case <-limit.C:
			t.Fatalf("never: %s", what)
		}
	}
}
