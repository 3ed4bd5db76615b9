package roles

import (
	"fmt"
	"io"
	"strings"

	"github.com/settlehq/settle/bus/internal/wire"
)

// Role lists the permissions of one kind of user of a deployment: the subjects that it publishes and
// subscribes to. Everything else must be denied. deploy/nats/permissions.conf is generated from
// these, and a test tries every cell of the table against a server that enforces it.
type Role struct {
	Name  string
	About string // one sentence
	// Publish and Subscribe are subjects, with NATS wildcards.
	Publish, Subscribe []string
}

// The roles. Each is a user of the deployment's account, which is the border between
// tenants: a reader reads everything in it. Readers and clients are programs that are trusted
// with that. Other programs use the service of the workers.
const (
	Worker      = "worker"
	Coordinator = "coordinator"
	Client      = "client"
	Reader      = "reader"
	Backup      = "backup"
	Operator    = "operator"
)

// subjects are those of a deployment.
type subjects struct{ wire.Names }

// Of returns the roles of a deployment with so many partitions. A wildcard stands for a whole
// token, so subjects with the partition inside a token are listed for each.
func Of(prefix string, partitions int) []Role {
	n := subjects{wire.NewNames(prefix)}
	all := []Role{n.surveyor(), n.client(), n.worker(partitions), n.coordinator(partitions), n.backup(), n.operator()}
	for i := range all {
		all[i].Subscribe = append([]string{"_INBOX.>"}, all[i].Subscribe...)
	}
	return all
}

// reads returns the subjects needed for reading: queries of streams, single messages, ranges of them, and
// consumers that need no acknowledgement. The creator of a consumer chooses where it delivers to, so this is
// for trusted programs.
func (n subjects) reads() []string {
	return []string{
		"$JS.API.INFO", "$JS.API.STREAM.INFO.*", "$JS.API.STREAM.MSG.GET.*", "$JS.API.DIRECT.GET.>",
		"$JS.API.CONSUMER.CREATE.>", "$JS.API.CONSUMER.DELETE.*.*", "$JS.API.CONSUMER.NAMES.*", "$JS.FC.>",
		"$SYS.REQ.USER.INFO",
	}
}

// asks returns the subjects needed for demand, and for requests to services and workers.
func (n subjects) asks() []string {
	return []string{n.Prefix + ".demand.*", n.Prefix + ".api.>", n.Prefix + ".own.>", n.Prefix + ".ping.*"}
}

// services finds out which services there are. A service answers such a question, which is not one of Settle's, to any
// subject and with the rights of its own user, so only those that look at a whole deployment may ask it.
const services = "$SRV.>"

// answers returns the subjects needed for answering. It is not allow_responses: a live query is one request
// with answers for days.
func (n subjects) answers() []string { return []string{"_INBOX.>"} }

// rewinds returns the subject to which rewinds are recorded.
func (n subjects) rewinds() string {
	return wire.BucketSubject(n.ProgramsBucket(), wire.RewindKey+".*")
}

func (n subjects) reader() Role {
	return Role{
		Name: Reader, About: "reads documents, receipts and logs, and watches; changes nothing",
		Publish:   append(n.reads(), n.asks()...),
		Subscribe: []string{n.Prefix + ".feed.>", n.RollCalls()},
	}
}

// surveyor is a reader that finds services: `settle doctor` and `settle fleet` ask them.
func (n subjects) surveyor() Role {
	r := n.reader()
	r.Publish = append(r.Publish, services)
	return r
}

func (n subjects) client() Role {
	r := n.reader()
	r.Name, r.About = Client, "a reader that sends events, without a principal"
	r.Publish = append(r.Publish, n.Sends(""), n.rewinds())
	return r
}

func (n subjects) worker(partitions int) Role {
	r := n.reader()
	r.Name, r.About = Worker, "hosts spaces: commits, checkpoints, purges, membership"
	r.Publish = append(r.Publish, n.answers()...)
	// To lanes, it sends the outcomes of tasks, and misrouted events.
	r.Publish = append(r.Publish, n.Prefix+".log.>", n.Prefix+".lane.>", n.Prefix+".send.>", n.RollCalls(), wire.BucketSubject(n.WorkersBucket(), "*"), n.rewinds())
	for p := range partitions {
		r.Publish = append(r.Publish, wire.BucketSubject(n.StateBucket(p), ">"),
			"$JS.API.STREAM.PURGE."+n.LaneStream(p), "$JS.API.STREAM.PURGE."+n.LogStream(p), "$JS.API.STREAM.PURGE."+wire.BucketStream(n.StateBucket(p)))
	}
	r.Subscribe = append(r.Subscribe, n.Prefix+".demand.*", n.Prefix+".ping.*", n.Prefix+".api.>", n.Prefix+".own.>", "$SRV.>")
	return r
}

func (n subjects) coordinator(partitions int) Role {
	r := n.reader()
	r.Name, r.About = Coordinator, "releases sends into lanes, writes dead letters, answers questions"
	r.Publish = append(r.Publish, n.answers()...)
	r.Publish = append(r.Publish, n.Prefix+".lane.>", n.Prefix+".dead.>", wire.BucketSubject(n.WorkersBucket(), "*"), wire.BucketSubject(n.ProgramsBucket(), wire.DeadTotalsKey), n.rewinds())
	for p := range partitions {
		r.Publish = append(r.Publish, wire.BucketSubject(n.StateBucket(p), wire.PositionPrefix+"*"))
	}
	r.Subscribe = append(r.Subscribe, n.Prefix+".api.>", "$SRV.>")
	return r
}

func (n subjects) backup() Role {
	r := n.surveyor()
	r.Name, r.About = Backup, "a reader that notes in the deployment that it has made a backup"
	r.Publish = append(r.Publish, wire.BucketSubject(n.ProgramsBucket(), wire.BackupKey))
	return r
}

func (n subjects) operator() Role {
	return Role{
		Name: Operator, About: "creates and changes the streams, deploys programs, redrives dead letters; for people",
		Publish:   []string{"$JS.API.>", "$JS.FC.>", "$JS.ACK.>", "$JS.SNAPSHOT.RESTORE.>", "$KV.>", "$SRV.>", "$SYS.REQ.USER.INFO", n.Prefix + ".>"},
		Subscribe: []string{n.Prefix + ".>", "$JS.EVENT.>", "$SRV.>", "$KV.>"},
	}
}

// WritePermissions writes the roles as variables of a nats-server configuration, for an
// include: a user's permissions are then $SETTLE_WORKER.
func WritePermissions(w io.Writer, prefix string, partitions int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Permissions of a deployment with prefix %s and %d partitions. Made by\n", prefix, partitions)
	fmt.Fprintf(&b, "# `settle permissions --prefix %s --partitions %d`; do not edit.\n", prefix, partitions)
	for _, r := range Of(prefix, partitions) {
		fmt.Fprintf(&b, "\n# %s: %s.\n%s_%s: {\n", r.Name, r.About, strings.ToUpper(prefix), strings.ToUpper(r.Name))
		writeSubjects(&b, "publish", r.Publish)
		writeSubjects(&b, "subscribe", r.Subscribe)
		b.WriteString("}\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeSubjects(b *strings.Builder, what string, subjects []string) {
	fmt.Fprintf(b, "  %s: { allow: [\n", what)
	for _, s := range subjects {
		fmt.Fprintf(b, "    %q\n", s)
	}
	b.WriteString("  ] }\n")
}
