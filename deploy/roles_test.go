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

func (u *user) maySubscribe(subject, group string) bool {
	u.t.Helper()
	return u.may(func() {
		sub, err := u.nc.QueueSubscribeSync(subject, group)
		if err != nil {
			u.t.Fatal(err)
		}
		u.settled()
		_ = sub.Unsubscribe()
	})
}

// The table has one line per operation, and the letters of the permitted roles: (r)eader, (c)lient, (w)orker,
// c(o)ordinator, (b)ackup, o(p)erator, (a)dministrator, per(f)ormer. A line with < subscribes, perhaps in a queue group, others publish. No stream contains these
// names, so a permitted request has no effect.
const table = `
learn that one is outside             rcwobpa.  $JS.API.STREAM.INFO.SETTLE_LOG_0
read streams' settings from outside   rc....a.  settle.js.STREAM.INFO.SETTLE_LOG_0
read a message by the leader          ..wobpa.  $JS.API.STREAM.MSG.GET.SETTLE_LOG_0
the same from outside                 rc....a.  settle.js.STREAM.MSG.GET.SETTLE_LOG_0
read messages in a row                ..wobpa.  $JS.API.DIRECT.GET.SETTLE_LOG_0
the same from outside                 rc....a.  settle.js.DIRECT.GET.SETTLE_LOG_0
read a document                       ..wobpa.  $JS.API.DIRECT.GET.KV_SETTLE_STATE_0.$KV.SETTLE_STATE_0.s.d
the same from outside                 rc....a.  settle.js.DIRECT.GET.KV_SETTLE_STATE_0.$KV.SETTLE_STATE_0.s.d
read a program                        ..wobpa.  $JS.API.DIRECT.GET.KV_SETTLE_PROGRAMS.$KV.SETTLE_PROGRAMS.rule.all
follow what spaces run                ..wobpa.  $JS.API.CONSUMER.CREATE.KV_SETTLE_PROGRAMS.settle-x.$KV.SETTLE_PROGRAMS.rule.>
follow a stream                       ..wobpa.  $JS.API.CONSUMER.CREATE.SETTLE_LOG_0.settle-x
follow a stream from outside          ......a.  settle.js.CONSUMER.CREATE.SETTLE_LOG_0.settle-x
stop following                        ..wobpa.  $JS.API.CONSUMER.DELETE.SETTLE_LOG_0.settle-x
follow what is none of the deployment ......a.  $JS.API.CONSUMER.CREATE.OTHER.settle-x
take messages of a consumer           ......a.  $JS.API.CONSUMER.MSG.NEXT.SETTLE_LOG_0.settle-x
answer flow control                   ..wobpa.  $JS.FC.SETTLE_LOG_0.settle-x.1
see the account                       ..wobpa.  $JS.API.INFO
see oneself                           rcwobpa.  $SYS.REQ.USER.INFO
ask a service                         rcwobpa.  settle.api.tree
ask why a node ran                    rcwobpa.  settle.api.why
ask what waits in a space             rcwobpa.  settle.api.lane
ask for the graph of a space          rcwobpa.  settle.api.graph
ask that in the name of a principal   ..wobpa.  settle.api.why.alice
ask a worker for its busiest spaces   ..wobpa.  settle.api.top-w1
ask another worker                    ..wobpa.  settle.api.own-w1
pass a question to another worker     ..wobpa.  settle.api.asked-w1
attach to a space                     ..wobpa.  settle.attached.0
hear what is attached                 ..w...a.  < settle.attached.0
ask it in the name of a principal     ..wobpa.  settle.api.get.alice
ask the owner of a partition          rcwobpa.  settle.own.0
want a document computed              rcwobpa.  settle.demand.0
find services                         ....bpa.  $SRV.INFO
follow confirmed commits              rcwobpa.  < settle.feed.0.s
hear a new owner                      rcwobpa.  < settle.rollcall.*
get answers                           .cwobpa.  < _INBOX.x.>
get answers that no other role sees   r.......  < _INBOX_reader.x.>

send an event                         .cw..pa.  settle.send.0.s.add.e
send in the name of a principal       ..w..pa.  settle.send.0.s.add.e.alice
release a send                        ..wo.pa.  settle.lane.7.s.add.s:1:0:0

commit                                ..w..pa.  settle.log.0.s
checkpoint                            ..w..pa.  $KV.SETTLE_STATE_0.s.d
announce oneself                      ..wo.pa.  $KV.SETTLE_WORKERS.w1
ask whether a worker is there         rcwobpa.  settle.ping.w1
list the consumers of a stream        ..wobpa.  $JS.API.CONSUMER.NAMES.SETTLE_LOG_0
call the roll                         ..w..pa.  settle.rollcall.0
be asked whether one is there         ..w...a.  < settle.ping.w1
hear what is wanted                   ..w...a.  < settle.demand.0
purge a lane                          ..w...a.  $JS.API.STREAM.PURGE.SETTLE_LANE_7
purge a log                           ..w...a.  $JS.API.STREAM.PURGE.SETTLE_LOG_7

save how far releases are             ..wo.pa.  $KV.SETTLE_STATE_0.=pos.released
write a dead letter                   ...o.pa.  settle.dead.s.add.e
keep the totals of dead letters       ...o.pa.  $KV.SETTLE_PROGRAMS.dead.totals
note that a stream has gone back      ..wo.pa.  $KV.SETTLE_PROGRAMS.rewind.SETTLE_LANE_0
answer questions                      ..wo..a.  < settle.api.tree
be found as a service                 ..wo..a.  < $SRV.INFO

purge documents                       ..w...a.  $JS.API.STREAM.PURGE.KV_SETTLE_STATE_0
purge dead letters                    ......a.  $JS.API.STREAM.PURGE.SETTLE_DEAD
purge the workers                     ......a.  $JS.API.STREAM.PURGE.KV_SETTLE_WORKERS
purge what is none of the deployment  ......a.  $JS.API.STREAM.PURGE.OTHER
deploy a program                      .....pa.  $KV.SETTLE_PROGRAMS.version.p.1
decide what a space runs              .....pa.  $KV.SETTLE_PROGRAMS.rule.all
ask a worker to stop                  .....pa.  $KV.SETTLE_PROGRAMS.drain.w1.request
note a backup                         ....bpa.  $KV.SETTLE_PROGRAMS.backup.newest
purge programs                        ......a.  $JS.API.STREAM.PURGE.KV_SETTLE_PROGRAMS
create a stream                       ......a.  $JS.API.STREAM.CREATE.NEW
change a stream                       ......a.  $JS.API.STREAM.UPDATE.NOTHING
delete a stream                       ......a.  $JS.API.STREAM.DELETE.NOTHING
delete a message                      ......a.  $JS.API.STREAM.MSG.DELETE.NOTHING
back a stream up                      ......a.  $JS.API.STREAM.SNAPSHOT.NOTHING
restore a stream                      ......a.  $JS.API.STREAM.RESTORE.NOTHING
move a stream's leader                ......a.  $JS.API.STREAM.LEADER.STEPDOWN.NOTHING
forge a confirmed commit              ......a.  settle.feed.0.s
read lanes as they come               ......a.  < settle.lane.>
read the log past its stream          ......a.  < settle.log.>

offer work to performers              ..w...a.  settle.work.charge
the same to those of a queue          ..w...a.  settle.work.charge.eu
take work, as one of their group      ......af  <performers settle.work.charge
the same of a queue                   ......af  <performers settle.work.charge.eu
take all work                         ......af  <performers settle.work.>
see what work is offered              ......a.  < settle.work.charge
take work beside the group            ......a.  <others settle.work.charge
answer an offer                       ......af  settle.answer.connection.token
see how offers are answered           ..w...a.  < settle.answer.connection.token
have a performer stop                 ..w...a.  settle.cancel.token
be notified that one can stop         ......af  < settle.cancel.token
get replies to answers                .......f  < _INBOX_performer.x.>
reply to the answers of a performer   ..w.....  _INBOX_performer.x.y

write what is none of the deployment  ........  other.subject
write another bucket of its name      ........  $JS.OTHER
answer a question, for days           ..wo....  _INBOX.another.user
answer a question from outside        ..wo....  _R_.x
ask the servers                       ........  $SYS.REQ.SERVER.PING
see everything                        ........  < >
see the servers                       ........  < $SYS.>
`

// letters are the roles that commands are tried with.
var letters = []string{roles.Reader, roles.Client, roles.Worker, roles.Coordinator, roles.Backup, roles.Operator, roles.Administrator}

// outside are those of the account without streams.
var outside = []string{roles.Reader, roles.Client}

// inTable are the roles in the order of the table's columns.
var inTable = append(slices.Clone(letters), roles.Performer)

// columns are their letters.
const columns = "rcwobpaf"

// cell is one operation and one role.
type cell struct {
	what, subject, group string
	subscribe            bool
	allowed              [len(columns)]bool
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
			return len(w) == len(columns) && strings.Trim(w, columns+".") == "" && (strings.Contains(w, ".") || w == columns)
		})
		if at < 0 {
			t.Fatalf("line %q has no column of roles", line)
		}
		c := cell{what: strings.Join(words[:at], " "), subject: words[len(words)-1]}
		c.group, c.subscribe = strings.CutPrefix(words[at+1], "<")
		for i := range inTable {
			c.allowed[i] = words[at][i] == columns[i]
		}
		all = append(all, c)
	}
	return all
}

func TestRolesMayDoWhatTheTableSaysAndNothingElse(t *testing.T) {
	t.Parallel()
	s := startWithUsers(t)
	for i, role := range inTable {
		u := connectAs(t, s, role)
		for _, c := range cells(t) {
			may := u.mayPublish
			if c.subscribe {
				may = func(subject string) bool { return u.maySubscribe(subject, c.group) }
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
