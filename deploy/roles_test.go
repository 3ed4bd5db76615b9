package deploy_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/bus/roles"
)

// startWithUsers starts one server with the users and permissions of users.conf.
func startWithUsers(t *testing.T) *embedded.Server {
	t.Helper()
	return startAt(t, ":0", t.TempDir())
}

// startAt is startWithUsers with an address and a data directory.
func startAt(t *testing.T, listen, store string) *embedded.Server {
	t.Helper()
	users, err := filepath.Abs("nats/users.conf")
	if err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(t.TempDir(), "server.conf")
	writeFile(t, conf, fmt.Sprintf("include %q\n", strings.TrimPrefix(relative(t, filepath.Dir(conf), users), "./")))
	return natstest.StartServer(t, embedded.Config{StoreDir: store, Fsync: embedded.FsyncInterval, Listen: listen, ConfigFile: conf})
}

func relative(t *testing.T, from, to string) string {
	t.Helper()
	path, err := filepath.Rel(from, to)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// user is a connection of a role.
type user struct {
	t    *testing.T
	role string
	nc   *nats.Conn
}

func connectAs(t *testing.T, s *embedded.Server, role string) *user {
	t.Helper()
	u := &user{t: t, role: role}
	var err error
	quiet := nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})
	if u.nc, err = nats.Connect(s.ClientURL(), nats.UserInfo(role, password(role)), quiet); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(u.nc.Close)
	return u
}

// settled waits until the server has processed everything that was sent before.
func (u *user) settled() {
	u.t.Helper()
	if err := u.nc.FlushTimeout(patience); err != nil {
		u.t.Fatal(err)
	}
}

// may reports whether the server permitted a request. The server sends an error before it answers the flush,
// and the connection records it in that order; its error handler may run later.
func (u *user) may(try func()) bool {
	u.t.Helper()
	before := u.nc.LastError()
	try()
	u.settled()
	after := u.nc.LastError()                                                // a new error each time, even with the same text
	return after == before || !errors.Is(after, nats.ErrPermissionViolation) //nolint:errorlint // is it the very same?
}

func (u *user) mayPublish(subject string) bool {
	u.t.Helper()
	return u.may(func() {
		if err := u.nc.Publish(subject, []byte("{}")); err != nil {
			u.t.Fatal(err)
		}
	})
}

func (u *user) maySubscribe(subject string) bool {
	u.t.Helper()
	return u.may(func() {
		sub, err := u.nc.SubscribeSync(subject)
		if err != nil {
			u.t.Fatal(err)
		}
		u.settled()
		_ = sub.Unsubscribe()
	})
}

// The table has one line per operation, and the letters of the permitted roles: (r)eader, (c)lient, (w)orker,
// c(o)ordinator, (b)ackup, o(p)erator. A line with < subscribes, others publish. No stream contains these
// names, so a permitted request has no effect.
const table = `
read streams' settings and state      rcwobp  $JS.API.STREAM.INFO.SETTLE_LOG_0
read a message by the leader          rcwobp  $JS.API.STREAM.MSG.GET.SETTLE_LOG_0
read messages in a row                rcwobp  $JS.API.DIRECT.GET.SETTLE_LOG_0
read a document                       rcwobp  $JS.API.DIRECT.GET.KV_SETTLE_STATE_0.$KV.SETTLE_STATE_0.s.d
read a program                        rcwobp  $JS.API.DIRECT.GET.KV_SETTLE_PROGRAMS.$KV.SETTLE_PROGRAMS.rule.all
follow what spaces run                rcwobp  $JS.API.CONSUMER.CREATE.KV_SETTLE_PROGRAMS.settle-x.$KV.SETTLE_PROGRAMS.rule.>
follow a stream                       rcwobp  $JS.API.CONSUMER.CREATE.SETTLE_LOG_0.settle-x
stop following                        rcwobp  $JS.API.CONSUMER.DELETE.SETTLE_LOG_0.settle-x
answer flow control                   rcwobp  $JS.FC.SETTLE_LOG_0.settle-x.1
see the account                       rcwobp  $JS.API.INFO
see oneself                           rcwobp  $SYS.REQ.USER.INFO
ask a service                         rcwobp  settle.api.tree
ask the owner of a partition          rcwobp  settle.own.0
want a document computed              rcwobp  settle.demand.0
find services                         r...bp  $SRV.INFO
follow confirmed commits              rcwobp  < settle.feed.0.s
hear a new owner                      rcwobp  < settle.rollcall.*
get answers                           rcwobp  < _INBOX.x.>

send an event                         .cw..p  settle.send.0.s.add.e
send in the name of a principal       ..w..p  settle.send.0.s.add.e.alice
release a send                        ..wo.p  settle.lane.7.s.add.s:1:0:0

commit                                ..w..p  settle.log.0.s
checkpoint                            ..w..p  $KV.SETTLE_STATE_0.s.d
announce oneself                      ..wo.p  $KV.SETTLE_WORKERS.w1
ask whether a worker is there         rcwobp  settle.ping.w1
list the consumers of a stream         rcwobp  $JS.API.CONSUMER.NAMES.SETTLE_LOG_0
call the roll                         ..w..p  settle.rollcall.0
be asked whether one is there         ..w..p  < settle.ping.w1
hear what is wanted                   ..w..p  < settle.demand.0
purge a lane                          ..w..p  $JS.API.STREAM.PURGE.SETTLE_LANE_7
purge a log                           ..w..p  $JS.API.STREAM.PURGE.SETTLE_LOG_7

save how far releases are             ..wo.p  $KV.SETTLE_STATE_0.=pos.released
write a dead letter                   ...o.p  settle.dead.s.add.e
keep the totals of dead letters       ...o.p  $KV.SETTLE_PROGRAMS.dead.totals
note that a stream has gone back      .cwo.p  $KV.SETTLE_PROGRAMS.rewind.SETTLE_LANE_0
answer questions                      ..wo.p  < settle.api.tree
be found as a service                 ..wo.p  < $SRV.INFO

purge documents                       ..w..p  $JS.API.STREAM.PURGE.KV_SETTLE_STATE_0
purge dead letters                    .....p  $JS.API.STREAM.PURGE.SETTLE_DEAD
purge the workers                     .....p  $JS.API.STREAM.PURGE.KV_SETTLE_WORKERS
purge what is none of the deployment  .....p  $JS.API.STREAM.PURGE.OTHER
deploy a program                      .....p  $KV.SETTLE_PROGRAMS.version.p.1
decide what a space runs              .....p  $KV.SETTLE_PROGRAMS.rule.all
note a backup                         ....bp  $KV.SETTLE_PROGRAMS.backup.newest
purge programs                        .....p  $JS.API.STREAM.PURGE.KV_SETTLE_PROGRAMS
create a stream                       .....p  $JS.API.STREAM.CREATE.NEW
change a stream                       .....p  $JS.API.STREAM.UPDATE.NOTHING
delete a stream                       .....p  $JS.API.STREAM.DELETE.NOTHING
delete a message                      .....p  $JS.API.STREAM.MSG.DELETE.NOTHING
back a stream up                      .....p  $JS.API.STREAM.SNAPSHOT.NOTHING
restore a stream                      .....p  $JS.API.STREAM.RESTORE.NOTHING
move a stream's leader                .....p  $JS.API.STREAM.LEADER.STEPDOWN.NOTHING
forge a confirmed commit              .....p  settle.feed.0.s
read lanes as they come               .....p  < settle.lane.>
read the log past its stream          .....p  < settle.log.>

write what is none of the deployment  ......  other.subject
write another bucket of its name      ......  $JS.OTHER
answer a question, for days           ..wo..  _INBOX.another.user
ask the servers                       ......  $SYS.REQ.SERVER.PING
see everything                        ......  < >
see the servers                       ......  < $SYS.>
`

// letters are the roles in the order of the table's columns.
var letters = []string{roles.Reader, roles.Client, roles.Worker, roles.Coordinator, roles.Backup, roles.Operator}

// cell is one operation and one role.
type cell struct {
	what, subject string
	subscribe     bool
	allowed       [6]bool
}

func cells(t *testing.T) (all []cell) {
	t.Helper()
	for line := range strings.Lines(table) {
		line = strings.TrimRight(line, "\n")
		if line == "" {
			continue
		}
		words := strings.Fields(line)
		at := slices.IndexFunc(words, func(w string) bool {
			return len(w) == 6 && strings.Trim(w, "rcwobp.") == "" && (strings.Contains(w, ".") || w == "rcwobp")
		})
		if at < 0 {
			t.Fatalf("line %q has no column of roles", line)
		}
		c := cell{what: strings.Join(words[:at], " "), subject: words[len(words)-1], subscribe: words[at+1] == "<"}
		for i := range letters {
			c.allowed[i] = words[at][i] == "rcwobp"[i]
		}
		all = append(all, c)
	}
	return all
}

func TestRolesMayDoWhatTheTableSaysAndNothingElse(t *testing.T) {
	t.Parallel()
	s := startWithUsers(t)
	for i, role := range letters {
		u := connectAs(t, s, role)
		for _, c := range cells(t) {
			may := u.mayPublish
			if c.subscribe {
				may = u.maySubscribe
			}
			if got := may(c.subject); got != c.allowed[i] {
				t.Errorf("%s: %s (%s): allowed %v, want %v", role, c.what, c.subject, got, c.allowed[i])
			}
		}
	}
}

// A connection needs a user of the account, and another account sees nothing.
func TestNobodyConnectsWithoutAUser(t *testing.T) {
	t.Parallel()
	s := startWithUsers(t)
	for _, login := range [][2]string{{"", ""}, {"worker", "wrong"}, {"nobody", "worker1"}} {
		nc, err := nats.Connect(s.ClientURL(), nats.UserInfo(login[0], login[1]), nats.Timeout(patience))
		if err == nil {
			nc.Close()
			t.Errorf("%q got in", login[0])
		}
	}
	system := connectAs(t, s, "system")
	sub, err := system.nc.SubscribeSync("settle.>")
	if err != nil {
		t.Fatal(err)
	}
	system.settled()
	client := connectAs(t, s, roles.Client)
	if !client.mayPublish("settle.send.0.s.add.e") {
		t.Error("a client may not send")
	}
	system.settled()
	if m, err := sub.NextMsg(time.Millisecond); err == nil {
		t.Errorf("the system account saw %s", m.Subject)
	}
}
