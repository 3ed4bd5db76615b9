package doctor

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/provision"
	"github.com/settlehq/settle/bus/survey"
	"github.com/settlehq/settle/model"
)

// dev makes the server one of the name of that of `settle dev`, at an address.
func dev(url, user string) func(*survey.Survey) {
	return func(s *survey.Survey) {
		s.Servers[0].Name, s.Servers[0].URL, s.Servers[0].Disk = "settle-dev-0123456789ab", url, &survey.DiskFacts{SyncAlways: true, ByProcess: true}
		s.User, s.Monitor = survey.UserFacts{User: user, Account: "$G", Unlimited: true}, survey.ErrNoMonitor
	}
}

// single returns a healthy deployment on one server with fsync always.
func single() *survey.Survey {
	return &survey.Survey{
		Now:    noon,
		Prefix: "settle", Connected: "settle-1",
		Servers: []survey.ServerFacts{{
			Name: "settle-1", Version: "2.15.2", RTT: time.Millisecond, JetStream: true, APILevel: 5, MaxPayload: 1 << 20,
			Disk: &survey.DiskFacts{SyncAlways: true, Used: 1 << 20, Limit: 1 << 30}, Clock: &survey.ClockFacts{},
		}},
		User:       survey.UserFacts{User: "operator", Account: "SETTLE", Roles: []string{"reader", "operator"}},
		Partitions: 1, Horizon: 168 * time.Hour,
		Streams: []survey.StreamFacts{
			{Name: "KV_SETTLE_WORKERS", Component: "workers", Replicas: 1, Version: "v1"},
			{Name: "SETTLE_DEAD", Component: "dead", Replicas: 1, Dead: &survey.DeadFacts{}},
			{Name: "SETTLE_LOG_0", Component: "log", Replicas: 1, Clock: &survey.ClockFacts{}},
			{Name: "SETTLE_LANE_0", Component: "lane", Replicas: 1},
			{Name: "KV_SETTLE_STATE_0", Component: "state", Replicas: 1},
		},
		Reaches:  []survey.ReachFacts{{LogLast: 10, LaneLast: 9, Released: 10, Saved: 10, Handled: 9}},
		Members:  []survey.MemberFacts{{ID: "w1", Answers: true}},
		Services: []survey.ServiceFacts{{Name: coordinatorService, Connection: "a"}, {Name: coordinatorService, Connection: "b"}},
	}
}

// backedUp returns the note of a backup, given its age by its own clock and the age of the note.
func backedUp(made, noted time.Duration) *bus.BackupNote {
	return &bus.BackupNote{ID: "b", AsOf: noon.Add(-made), Noted: noon.Add(-noted)}
}

// letters returns dead letters, given their number, the number of open ones and the age of the oldest.
func letters(n, open int, age time.Duration) *survey.DeadFacts {
	f := &survey.DeadFacts{DeadCounts: model.DeadCounts{Letters: n, Open: open}}
	if age > 0 {
		f.OldestOpen = noon.Add(-age)
	}
	return f
}

// three returns a healthy deployment on three servers.
func three() *survey.Survey {
	s := single()
	s.Cluster = "settle"
	first := s.Servers[0]
	s.Servers = nil
	for _, name := range []string{"n1", "n2", "n3"} {
		n := first
		n.Name, n.Cluster = name, "settle"
		disk := *first.Disk
		n.Disk = &disk
		s.Servers = append(s.Servers, n)
	}
	for i := range s.Streams {
		s.Streams[i].Replicas, s.Streams[i].Leader = 3, "n1"
		s.Streams[i].Followers = []survey.FollowerFacts{{Name: "n2", Current: true}, {Name: "n3", Current: true}}
	}
	return s
}

// relaxed makes the servers sync every two minutes.
func relaxed(s *survey.Survey) {
	for i := range s.Servers {
		s.Servers[i].Disk.SyncAlways, s.Servers[i].Disk.SyncInterval = false, 2*time.Minute
	}
}

var deployments = []struct {
	name  string
	from  func() *survey.Survey
	but   func(*survey.Survey)
	level Level
	says  string // parts of the report, joined, separated by |
}{
	{"one server that writes through", single, nil, OK, "loses power: Nothing that was acknowledged|disk is lost: Everything since the last backup|0 failures"},
	{"one server with the default", single, relaxed, Warning, "! durability settle-1 writes to the disk every 2 minutes|loses power: Up to 2 minutes of what was acknowledged|refuses to serve it|The NATS server is killed: Nothing"},
	{"one server that cannot be seen into", single, func(s *survey.Survey) { s.Servers[0].Disk, s.Monitor = nil, survey.ErrNoMonitor }, Warning, "durability not known|--monitor http://HOST:8222|loses power: Not known"},
	{"an embedded server that writes through", single, func(s *survey.Survey) {
		s.Servers[0].Disk, s.Monitor = &survey.DiskFacts{SyncAlways: true, ByProcess: true}, survey.ErrNoMonitor
	}, OK, "settle-1 writes to the disk before it acknowledges, according to the process that embeds it|loses power: Nothing"},
	{"a monitoring port that does not answer where that is known otherwise", single, func(s *survey.Survey) {
		s.Servers[0].Disk, s.Monitor = &survey.DiskFacts{SyncAlways: true, ByProcess: true}, errors.New("connection refused")
	}, Warning, "according to the process that embeds it|not every server has answered: connection refused"},
	{"an embedded server that does not", single, func(s *survey.Survey) {
		s.Servers[0].Disk, s.Monitor = &survey.DiskFacts{SyncInterval: 2 * time.Minute, ByProcess: true}, survey.ErrNoMonitor
	}, Warning, "settle-1 writes to the disk every 2 minutes|embedded.FsyncAlways|Up to 2 minutes"},
	{"a monitoring port that does not answer", single, func(s *survey.Survey) { s.Servers[0].Disk, s.Monitor = nil, errors.New("connection refused") }, Warning, "not known|(connection refused)"},
	{"three servers that write through", three, nil, OK, "3 servers seen|5 of 5 streams: 3 replicas|lose power together: Nothing that was acknowledged|Two servers lose their disks: Perhaps all"},
	{"three servers with the default", three, relaxed, Warning, "If a majority of the servers lose power within 2 minutes|lose power together: Up to 2 minutes|outvotes a server"},
	{"one that is down", three, func(s *survey.Survey) {
		s.Servers = s.Servers[:2]
		s.Unreachable = []survey.Unseen{{What: "nats://n3:4222", Reason: errors.New("refused")}}
		for i := range s.Streams {
			s.Streams[i].Followers[1] = survey.FollowerFacts{Name: "n3", Offline: true}
		}
	}, Warning, "nats://n3:4222 does not answer: refused|2 servers seen, 1 do not answer|n3 is not up to date with 5 streams|lose power together: Not known"},
	{"two of three", three, func(s *survey.Survey) { s.Servers = s.Servers[:2] }, Warning, "Three replicas need three servers"},
	{"no leader", three, func(s *survey.Survey) { s.Streams[2].Leader = "" }, Failure, "✗ replicas stream SETTLE_LOG_0 has no leader"},
	{"one replica in a cluster", three, func(s *survey.Survey) {
		s.Streams[2].Replicas = 1
		s.Streams[2].Broken = []*provision.AssetError{{Stream: "SETTLE_LOG_0", Setting: "replicas", Found: "1", Wanted: "3 or 5 in cluster settle", Breaks: "it can be lost", Fix: "Set it"}}
	}, Failure, "stream SETTLE_LOG_0: replicas is 1, must be 3 or 5|Otherwise it can be lost.|4 of 5 streams have every setting"},
	{"a setting that can stop work", single, func(s *survey.Survey) {
		s.Streams[3].Broken = []*provision.AssetError{{Stream: "SETTLE_LANE_0", Setting: "maximum messages", Found: "9", Wanted: "unlimited", Breaks: "events are refused", Fix: "Set it", Limits: true}}
	}, Warning, "! streams stream SETTLE_LANE_0: maximum messages is 9, must be unlimited|Otherwise events are refused.|4 of 5 streams have every setting"},
	{"a stream that is missing", single, func(s *survey.Survey) { s.Streams[3].Missing, s.Streams[3].Replicas = true, 0 }, Failure, "SETTLE_LANE_0 (lane) is missing|restore it from a backup (`settle restore DIR --stream SETTLE_LANE_0`)"},
	{"a stream whose restore was interrupted", single, func(s *survey.Survey) { s.Streams[3].Restoring = true }, Failure, "SETTLE_LANE_0 (lane) is being restored, or a restore of it was interrupted|run it again"},
	{"a stream that does not answer", single, func(s *survey.Survey) { s.Streams[3].Unseen = errors.New("no answer") }, Failure, "stream SETTLE_LANE_0: no answer"},
	{"no deployment", single, func(s *survey.Survey) { s.NoDeployment, s.Streams = true, nil }, Failure, "there is no deployment with prefix settle|`settle provision`"},
	{"settings that cannot be read", single, func(s *survey.Survey) { s.Settings = errors.New("9 partitions, not 8") }, Failure, "deployment 9 partitions, not 8"},
	{"no JetStream", single, func(s *survey.Survey) { s.JetStream, s.Streams = errors.New("not enabled"), nil }, Failure, "JetStream cannot be used: not enabled"},
	{"a server that is too old", three, func(s *survey.Survey) {
		s.Servers[1].Version, s.Servers[1].TooOld = "2.14.0", errors.New("2.14.0 is too old")
	}, Failure, "n2: nats-server 2.14.0|2.14.0 is too old|different versions: 2.14.0, 2.15.2"},
	{"servers that take different sizes", three, func(s *survey.Survey) { s.Servers[1].MaxPayload = 1 << 19 }, Failure, "max_payload is between 512.0 KiB and 1.0 MiB"},
	{"small messages", single, func(s *survey.Survey) { s.Servers[0].MaxPayload = 1 << 16 }, Warning, "max_payload is 64.0 KiB|at most half of it, 32.0 KiB"},
	{"huge messages", single, func(s *survey.Survey) { s.Servers[0].MaxPayload = 64 << 20 }, Warning, "max_payload is 64.0 MiB"},
	{"a disk that fills", single, func(s *survey.Survey) { s.Servers[0].Disk.Used = 850 << 20 }, Warning, "server settle-1 holds 850.0 MiB of 1.0 GiB (83 %)"},
	{"a lane that is nearly full", single, func(s *survey.Survey) { s.Streams[3].Bytes, s.Streams[3].Limit = 96, 100 }, Failure, "SETTLE_LANE_0 holds 96 bytes of 100 bytes (96 %)|events are refused"},
	{"a lane that has nearly as many messages as it may", single, func(s *survey.Survey) { s.Streams[3].Messages, s.Streams[3].MaxMessages = 81, 100 }, Warning, "SETTLE_LANE_0 holds 81 of 100 messages (81 %)|Take the limit away"},
	{"a lane that has as many messages as it may", single, func(s *survey.Survey) { s.Streams[3].Messages, s.Streams[3].MaxMessages = 100, 100 }, Failure, "SETTLE_LANE_0 holds 100 of 100 messages (100 %)"},
	{"an account that fills", single, func(s *survey.Survey) { s.Storage = survey.StorageFacts{Used: 90, Limit: 100} }, Warning, "the account holds 90 bytes of 100 bytes (90 %)"},
	{"a log that has lost messages", single, func(s *survey.Survey) { s.Reaches[0].LogLast = 7 }, Failure, "✗ log and lanes SETTLE_LOG_0 ends at 7, and is known to have reached 10|Workers refuse its partition"},
	{"a lane that has lost messages", single, func(s *survey.Survey) { s.Reaches[0].LaneLast = 3 }, Failure, "SETTLE_LANE_0 ends at 3, and events up to 9 were handled"},
	{"a log that cannot be read", single, func(s *survey.Survey) { s.Reaches[0].Unseen = errors.New("no answer") }, Warning, "could not be compared: no answer"},
	{"a log that is not answered for", single, func(s *survey.Survey) { s.Reaches[0].Unseen = survey.ErrNoAnswer }, Warning, "could not be compared: no answer|Use a user that may read"},
	{"a log with a message that cannot be read", single, func(s *survey.Survey) {
		s.Reaches[0].Unseen = &model.UnreadableError{Space: "s", Seq: 7, Reason: errors.New("bits")}
	}, Warning, "could not be compared: |`settle quarantine` names it"},
	{"a log that cannot be compared for another reason", single, func(s *survey.Survey) { s.Reaches[0].Unseen = errors.New("disk error") }, Warning, "could not be compared: disk error|The reason is not that this user may not read"},
	{"a consumer of another program", single, func(s *survey.Survey) { s.Streams[2].Consumers = []string{"audit"} }, Warning, "stream SETTLE_LOG_0 has consumers that are none of Settle's: audit"},
	{"a clock that is off by seconds", single, func(s *survey.Survey) { s.Servers[0].Clock = &survey.ClockFacts{Offset: -3 * time.Second} }, Warning, "between -3s and 0s ahead"},
	{"clocks that are far apart", three, func(s *survey.Survey) {
		s.Servers[0].Clock = &survey.ClockFacts{Offset: -40 * time.Second}
		s.Servers[1].Clock = &survey.ClockFacts{Offset: 40 * time.Second}
	}, Failure, "between -40s and 40s ahead|No order and no receipt depends on a clock"},
	{"a slow way is no clock", single, func(s *survey.Survey) {
		s.Servers[0].Clock = &survey.ClockFacts{Offset: 3 * time.Second, Uncertainty: 4 * time.Second}
	}, OK, "agree to within 1s"},
	{"no worker", single, func(s *survey.Survey) { s.Members[0].Answers = false }, Failure, "✗ workers no worker answers|none is handled"},
	{"a worker that was killed", single, func(s *survey.Survey) { s.Members = append(s.Members, survey.MemberFacts{ID: "w0"}) }, OK, "1 worker: w1|1 that have ended without leaving, as when they are killed: w0"},
	{"workers of different programs", single, func(s *survey.Survey) {
		s.Members = []survey.MemberFacts{{ID: "w1", Program: "counter", Answers: true}, {ID: "w2", Program: "flights", Answers: true}, {ID: "w3", Answers: true}}
	}, Warning, "! of different programs: counter (w1), flights (w2)|are refused for good"},
	{"workers of one program", single, func(s *survey.Survey) {
		s.Members = []survey.MemberFacts{{ID: "w1", Program: "counter", Answers: true}, {ID: "w2", Program: "flights"}, {ID: "w3", Answers: true}}
	}, OK, "2 workers: w1, w3"},
	{"workers that cannot be seen", single, func(s *survey.Survey) { s.MembersUnseen = errors.New("no answer") }, Warning, "the workers' bucket could not be read: no answer"},
	{"a coordinator is no worker", single, func(s *survey.Survey) { s.Members[0].Role = "coordinator" }, Failure, "no worker answers"},
	{"no coordinator", single, func(s *survey.Survey) { s.Services = nil }, Failure, "no coordinator answers|Nothing is lost"},
	{"one coordinator", single, func(s *survey.Survey) { s.Services = s.Services[:1] }, OK, "coordinators one: when it ends"},
	{"two coordinators of one id", single, func(s *survey.Survey) {
		for _, c := range []string{"a", "b"} {
			s.Services = append(s.Services, survey.ServiceFacts{Name: "settle-coordinator-alive", Connection: c, Endpoints: []string{"coordinator-c1"}})
		}
	}, Warning, "✓ coordinators 2|2 processes are called c1|--id of its own"},
	{"coordinators that are behind", single, func(s *survey.Survey) { s.Reaches[0].Behind = 20_000 }, Warning, "20000 log entries are not read yet"},
	{"processes of different versions", single, func(s *survey.Survey) { s.Services[0].Version, s.Services[1].Version = "v1", "v2" }, Warning, "processes of different versions: v1, v2"},
	{"a dead letter that was sent again", single, func(s *survey.Survey) { s.Streams[1].Dead = letters(2, 1, 0) }, OK, "dead letters 2 events, ever; 1 open: `settle dead --open`"},
	{"dead letters", single, func(s *survey.Survey) { s.Streams[1].Dead = letters(99, 99, 23*time.Hour) }, OK, "dead letters 99 events, ever; 99 open, the oldest for 23h0m0s"},
	{"many dead letters", single, func(s *survey.Survey) { s.Streams[1].Dead = letters(5000, 100, time.Hour) }, Warning, "! dead letters 5000 events, ever; 100 open|settle redrive --all"},
	{"a flood of dead letters", single, func(s *survey.Survey) { s.Streams[1].Dead = letters(100_000, 100_000, time.Hour) }, Failure, "✗ dead letters 100000 events, ever; 100000 open"},
	{"dead letters with a cause", single, func(s *survey.Survey) {
		s.Streams[1].Dead = letters(3, 3, time.Hour)
		s.Streams[1].Dead.Stream, s.Streams[1].Dead.OfStream = "add", 2
		s.Streams[1].Dead.Firsts = []model.DeadLetter{
			{Space: "s2", Stream: "ship", Event: "e1", Error: "no room"}, {Space: "s1", Stream: "add", Event: "e7", Error: "boom\n at x"},
		}
	}, OK, "3 open, the oldest for 1h0m0s; 2 of these of stream add, the first because: boom (event e7 of space s1); of stream ship, the first because: no room (event e1 of space s2):"},
	{"an old dead letter", single, func(s *survey.Survey) { s.Streams[1].Dead = letters(1, 1, 30*time.Hour) }, Warning, "! dead letters 1 event, ever; 1 open, the oldest for 30h0m0s"},
	{"many that were dismissed", single, func(s *survey.Survey) { s.Streams[1].Dead = letters(100_000, 0, 0) }, OK, "dead letters 100000 events, ever; 0 open:"},
	{"dead letters that cannot be counted", single, func(s *survey.Survey) { s.Streams[1].Dead = nil }, Warning, "dead letters could not be counted"},
	{"a young deployment without a backup", single, func(s *survey.Survey) { s.Created = noon.Add(-6 * 24 * time.Hour) }, OK, "✓ backup none was ever made: `settle backup DIR`"},
	{"an old deployment without a backup", single, func(s *survey.Survey) { s.Created = noon.Add(-8 * 24 * time.Hour) }, Warning, "! backup none was ever made with `settle backup`, and the deployment is 192h0m0s old|--backup-age 0"},
	{"a deployment of which nothing is known", single, func(s *survey.Survey) { s.Created = time.Time{} }, OK, "✓ backup none was ever made"},
	{"a new backup", single, func(s *survey.Survey) {
		s.Created, s.Backup = noon.Add(-1000*time.Hour), backedUp(26*time.Hour, 25*time.Hour)
	}, OK, "✓ backup the newest was made 26h0m0s ago, as of 2026-11-20T10:00:00Z"},
	{"an old backup", single, func(s *survey.Survey) { s.Backup = backedUp(169*time.Hour, 168*time.Hour) }, Warning, "! backup the newest was made 169h0m0s ago"},
	{"an old backup from a clock that is ahead", single, func(s *survey.Survey) { s.Backup = backedUp(-time.Hour, 200*time.Hour) }, Warning, "! backup the newest was made 200h0m0s ago"},
	{"a backup that cannot be seen", single, func(s *survey.Survey) { s.BackupUnseen = errors.New("no answer") }, Warning, "! backup it is not known when the newest was made: no answer"},
	{"a server without users", single, func(s *survey.Survey) { s.User = survey.UserFacts{Account: "$G", Unlimited: true} }, Warning, "with all permissions|Every client that reaches the server"},
	{"the server of settle dev", single, dev("nats://127.0.0.1:7422", ""), OK, "✓ permissions a client without a user may do everything: it is the server of `settle dev`"},
	{"one of its name on another machine", single, dev("nats://10.0.0.7:7422", ""), Warning, "with all permissions"},
	{"the server of settle dev with a user", single, dev("nats://127.0.0.1:7422", "ann"), Warning, "with all permissions"},
	{"a user without a role", single, func(s *survey.Survey) {
		s.User = survey.UserFacts{User: "x", Account: "A", Lacks: map[string][]string{"backup": {"publish settle.api.>"}}}
	}, Warning, "user x of account A has the rights of no role; the role backup needs besides: publish settle.api.>"},
	{"accounts as they should be", single, func(s *survey.Survey) { s.Borders = &survey.BorderFacts{} }, OK, "✓ borders no client in account SETTLE, and it exports no more than clients need"},
	{"an account that exports too much, and to all", single, func(s *survey.Survey) {
		s.Borders = &survey.BorderFacts{Excess: []string{"$JS.API.CONSUMER.>"}, Public: []string{"settle.api.>"}}
	}, Warning, "account SETTLE exports what no client needs: $JS.API.CONSUMER.>|every account may import from account SETTLE: settle.api.>"},
	{"a client in the account of the streams", single, func(s *survey.Survey) {
		s.Borders = &survey.BorderFacts{Guests: []string{`user shop as "settle/client/board"`}}
	}, Warning, `clients in account SETTLE, which has the streams: user shop as "settle/client/board"`},
	{"accounts that cannot be seen", single, func(s *survey.Survey) { s.Borders = &survey.BorderFacts{Unknown: errors.New("no answer")} }, Warning, "! borders not known: no answer"},
	{"a user that cannot ask for its rights", single, func(s *survey.Survey) { s.User = survey.UserFacts{Unknown: errors.New("no answer")} }, Warning, "permissions not known: no answer"},
}

func TestEveryDeploymentIsJudged(t *testing.T) {
	for _, d := range deployments {
		t.Run(d.name, func(t *testing.T) {
			s := d.from()
			if d.but != nil {
				d.but(s)
			}
			r := Judge(s, nil, nil, BackupAge)
			text := printed(t, r)
			if r.Level != d.level {
				t.Errorf("level %v, want %v", r.Level, d.level)
			}
			joined := strings.Join(strings.Fields(text), " ")
			for part := range strings.SplitSeq(d.says, "|") {
				if !strings.Contains(joined, part) {
					t.Errorf("it does not say %q", part)
				}
			}
			if t.Failed() {
				t.Log("\n" + text)
			}
		})
	}
}

func printed(t *testing.T, r *Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.Print(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Every finding says why it matters and what to do, and fits a terminal.
func TestWhatIsNotWellSaysWhyAndWhatToDo(t *testing.T) {
	for _, d := range deployments {
		s := d.from()
		if d.but != nil {
			d.but(s)
		}
		r := Judge(s, nil, nil, BackupAge)
		for _, f := range r.Findings {
			if f.Found == "" || f.Check == "" || f.Level > OK && (f.Reason == "" || f.Do == "") {
				t.Errorf("%s: %+v", d.name, f)
			}
		}
		for line := range strings.Lines(printed(t, r)) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > width {
				t.Errorf("%s: %d columns: %s", d.name, n, line)
			}
		}
	}
}

// A deployment that is backed up by other means gets no warning about backups.
func TestBackups_ArePassedOverWhenThatIsSaid(t *testing.T) {
	s := single()
	s.Created, s.BackupUnseen = noon.Add(-1000*time.Hour), errors.New("no answer")
	if r := Judge(s, nil, nil, 0); r.Level != OK || strings.Contains(printed(t, r), "backup none") || strings.Contains(printed(t, r), "newest") {
		t.Errorf("it says\n%s", printed(t, r))
	}
	if r := Judge(s, nil, nil, time.Hour); r.Level != Warning {
		t.Errorf("it says\n%s", printed(t, r))
	}
}

func TestTheReportIsJSON(t *testing.T) {
	text, err := json.Marshal(Judge(single(), nil, nil, BackupAge))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"level":"ok"`, `"check":"durability"`, `"when":"The server's machine loses power"`} {
		if !strings.Contains(string(text), part) {
			t.Errorf("no %s in %s", part, text)
		}
	}
}
