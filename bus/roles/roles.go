package roles

import (
	"slices"

	"github.com/settlehq/settle/bus/internal/wire"
)

// Role lists the permissions of one kind of user of a deployment: the subjects that it publishes and
// subscribes to. Everything else must be denied. deploy/nats/permissions.conf is generated from
// these, and a test tries every cell of the table against a server that enforces it.
type Role struct {
	Name  string
	About string // one sentence
	// Outside reports that users of the role belong into an account that imports what they need, and not into the account
	// of the streams: see Border.
	Outside bool
	// Publish and Subscribe are subjects, with NATS wildcards.
	Publish, Subscribe []string
}

// The roles. Readers and clients are outside. The others are trusted programs and people: a server sends what a user of the
// account of the streams reads to any subject that the user names, with the rights of the server.
const (
	Worker        = "worker"
	Coordinator   = "coordinator"
	Client        = "client"
	Reader        = "reader"
	Backup        = "backup"
	Operator      = "operator"
	Performer     = "performer"
	Administrator = "administrator"
)

// subjects are those of a deployment.
type subjects struct {
	wire.Names
	partitions int
}

func newSubjects(prefix string, partitions int) subjects {
	return subjects{wire.NewNames(prefix), partitions}
}

// Of returns the roles of a deployment with so many partitions. A wildcard stands for a whole
// token, so subjects with the partition inside a token are listed for each.
func Of(prefix string, partitions int) []Role {
	n := newSubjects(prefix, partitions)
	all := []Role{n.reader(), n.client(), n.worker(), n.coordinator(), n.backup(), n.operator(), n.performer(), n.administrator()}
	for i := range all {
		inbox := "_INBOX.>"
		if all[i].Name == Reader || all[i].Name == Performer {
			inbox = ownInbox(all[i].Name)
		}
		all[i].Subscribe = append([]string{inbox}, all[i].Subscribe...)
	}
	return all
}

// ownInbox returns the inboxes of users that share theirs with no other role or principal. The answer to a request goes to the subject
// that the request names: a user that sees the inbox of another one can have an answer of its own choice sent there.
func ownInbox(name string) string { return wire.OwnInbox(name) + ".>" }

// reads returns the subjects needed for reading: the settings of streams, single messages, and ranges of them.
func reads(api string) []string {
	return []string{api + "STREAM.INFO.*", api + "STREAM.MSG.GET.*", api + "DIRECT.GET.>", userInfo}
}

// theAPI precedes the subjects of the JetStream API.
const theAPI = "$JS.API."

// userInfo is where a user asks for its own permissions.
const userInfo = "$SYS.REQ.USER.INFO"

// streams are those of the deployment.
func (n subjects) streams() (all []string) {
	for p := range n.partitions {
		all = append(all, n.LogStream(p), n.LaneStream(p), wire.BucketStream(n.StateBucket(p)))
	}
	return append(all, n.DeadStream(), wire.BucketStream(n.WorkersBucket()), wire.BucketStream(n.ProgramsBucket()))
}

// follows returns the subjects needed for following streams of the deployment. The creator of a consumer chooses where it delivers to.
func (n subjects) follows() []string {
	all := []string{"$JS.API.INFO", "$JS.API.CONSUMER.NAMES.*", "$JS.FC.>"}
	for _, s := range n.streams() {
		all = append(all, "$JS.API.CONSUMER.CREATE."+s+".>", "$JS.API.CONSUMER.DELETE."+s+".*")
	}
	return all
}

// endpoints are what readers and clients ask. Requests in the name of a principal have a token more, and processes ask each other at
// endpoints of their own.
var endpoints = []string{"get", "watch", "tree", "receipt", "dead", "why", "lane", "graph"}

// asks returns the subjects needed for demand, and for requests to workers and to endpoints of services.
func (n subjects) asks(endpoints ...string) []string {
	all := []string{n.Prefix + ".demand.*", n.Prefix + ".own.>", n.Prefix + ".ping.*"}
	for _, e := range endpoints {
		all = append(all, n.Endpoint(e))
	}
	return all
}

// hears returns the subjects on which every user receives commits, and the roll calls of new owners.
func (n subjects) hears() []string { return []string{n.Prefix + ".feed.>", n.RollCalls()} }

// services finds out which services there are. A service answers such a question, which is not one of Settle's, to any
// subject and with the rights of its own user.
const services = "$SRV.>"

// answers returns the subjects needed for answering: inboxes, and what stands for those of other accounts. It is not
// allow_responses: a live query is one request with answers for days.
func (n subjects) answers() []string { return []string{"_INBOX.>", "_R_.>"} }

// rewinds returns the subject to which rewinds are recorded.
func (n subjects) rewinds() string {
	return wire.BucketSubject(n.ProgramsBucket(), wire.RewindKey+".*")
}

// purge returns where the removal of messages of a stream is requested.
func purge(stream string) string { return "$JS.API.STREAM.PURGE." + stream }

func (n subjects) reader() Role {
	return Role{
		Name: Reader, About: "reads documents, receipts and logs, and watches; changes nothing", Outside: true,
		// The first is where a client learns that its account has no streams.
		Publish:   slices.Concat([]string{theAPI + "STREAM.INFO.*"}, reads(n.ImportedAPI()), n.asks(endpoints...)),
		Subscribe: n.hears(),
	}
}

func (n subjects) client() Role {
	r := n.reader()
	r.Name, r.About = Client, "a reader that sends events, without a principal"
	r.Publish = append(r.Publish, n.Sends(""))
	return r
}

// Principal returns the role of users that send in the name of a principal, and read what the rules about access allow it
// (package access): both by requests under its name. It reads no streams.
func Principal(prefix, name string) Role {
	n := newSubjects(prefix, 0)
	settings := "STREAM.INFO." + wire.BucketStream(n.WorkersBucket())
	return Role{
		Name: name, About: "the principal " + name + ": sends in this name, and reads what the rules allow it", Outside: true,
		Publish:   []string{theAPI + settings, n.ImportedAPI() + settings, userInfo, n.Sends(name), n.Endpoint("get") + "." + name, n.Endpoint("watch") + "." + name},
		Subscribe: []string{ownInbox(name)},
	}
}

// inside returns what the roles in the account of the streams have in common.
func (n subjects) inside() Role {
	return Role{Publish: slices.Concat(reads(theAPI), n.asks(">"), []string{n.Prefix + ".attached.*"}, n.follows()), Subscribe: n.hears()}
}

func (n subjects) worker() Role {
	r := n.inside()
	r.Name, r.About = Worker, "hosts spaces: commits, checkpoints, purges, membership"
	r.Publish = append(r.Publish, n.answers()...)
	// To lanes, it sends the outcomes of tasks, and misrouted events.
	r.Publish = append(r.Publish, n.Prefix+".log.>", n.Prefix+".lane.>", n.Prefix+".send.>", n.RollCalls(), wire.BucketSubject(n.WorkersBucket(), "*"), n.rewinds(),
		n.Works(), n.WorkCancel("*"), ownInbox(Performer))
	for p := range n.partitions {
		r.Publish = append(r.Publish, wire.BucketSubject(n.StateBucket(p), ">"), purge(n.LaneStream(p)), purge(n.LogStream(p)), purge(wire.BucketStream(n.StateBucket(p))))
	}
	r.Subscribe = append(r.Subscribe, n.Prefix+".demand.*", n.Prefix+".attached.*", n.Prefix+".ping.*", n.Prefix+".api.>", n.Prefix+".own.>", n.WorkAnswers("*"), services)
	return r
}

func (n subjects) coordinator() Role {
	r := n.inside()
	r.Name, r.About = Coordinator, "releases sends into lanes, writes dead letters, answers questions"
	r.Publish = append(r.Publish, n.answers()...)
	r.Publish = append(r.Publish, n.Prefix+".lane.>", n.Prefix+".dead.>", wire.BucketSubject(n.WorkersBucket(), "*"), wire.BucketSubject(n.ProgramsBucket(), wire.DeadTotalsKey), n.rewinds())
	for p := range n.partitions {
		r.Publish = append(r.Publish, wire.BucketSubject(n.StateBucket(p), wire.PositionPrefix+"*"))
	}
	r.Subscribe = append(r.Subscribe, n.Prefix+".api.>", services)
	return r
}

func (n subjects) backup() Role {
	r := n.inside()
	r.Name, r.About = Backup, "copies the streams, notes in the deployment that it has, and finds services"
	r.Publish = append(r.Publish, services, wire.BucketSubject(n.ProgramsBucket(), wire.BackupKey))
	return r
}

func (n subjects) operator() Role {
	r := n.backup()
	r.Name, r.About = Operator, "deploys programs, redrives dead letters, decides about what is lost or cannot be read; for people"
	r.Publish = append(r.Publish, n.Prefix+".log.>", n.Prefix+".lane.>", n.Prefix+".send.>", n.Prefix+".dead.>", n.RollCalls(),
		wire.BucketSubject(n.ProgramsBucket(), ">"), wire.BucketSubject(n.WorkersBucket(), "*"))
	for p := range n.partitions {
		r.Publish = append(r.Publish, wire.BucketSubject(n.StateBucket(p), ">"))
	}
	return r
}

// performer takes work, answers it, and hears that it can stop. It subscribes to work as a member of the queue group only, so it sees none
// that was offered to another one, and to where that is answered it does not. It is in the account of the streams, of which it
// reads nothing.
func (n subjects) performer() Role {
	return Role{
		Name: Performer, About: "performs actions: takes work that workers offer, and ends what it was given",
		Publish:   []string{n.WorkAnswer("*", "*")},
		Subscribe: []string{n.Works() + " " + wire.PerformersQueue, n.WorkCancel("*")},
	}
}

func (n subjects) administrator() Role {
	return Role{
		Name: Administrator, About: "creates, changes, restores and deletes the streams, and everything else; for people",
		Publish:   []string{"$JS.API.>", "$JS.FC.>", "$JS.ACK.>", "$JS.SNAPSHOT.RESTORE.>", "$KV.>", services, userInfo, n.Prefix + ".>"},
		Subscribe: []string{n.Prefix + ".>", "$JS.EVENT.>", services, "$KV.>"},
	}
}
