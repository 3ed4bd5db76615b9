package attack

import (
	"fmt"
	"slices"
	"strings"
)

// names are those of one run. Everything that an attempt could store has the mark in its subject.
type names struct {
	prefix string // of subjects
	upper  string // of streams
	mark   string
	parts  int
	decoy  string // a stream that only attempts would touch
}

func (n *names) streams() (all []string) {
	for p := range n.parts {
		all = append(all, fmt.Sprintf("%s_LOG_%d", n.upper, p), fmt.Sprintf("%s_LANE_%d", n.upper, p), fmt.Sprintf("KV_%s_STATE_%d", n.upper, p))
	}
	return append(all, n.upper+"_DEAD", "KV_"+n.upper+"_WORKERS", "KV_"+n.upper+"_PROGRAMS")
}

// stored are subjects that streams of the deployment store, and that no user outside may reach.
func (n *names) stored() []string {
	return []string{
		n.prefix + ".log.0." + n.mark,
		n.prefix + ".lane.0." + n.mark + ".add." + n.mark + ":1:1:0",
		n.prefix + ".lane.0." + n.mark + ".add.plain",
		n.prefix + ".send.0." + n.mark + ".add.e1.somebody",
		n.prefix + ".dead." + n.mark + ".add.e1",
		"$KV." + n.upper + "_STATE_0." + n.mark + ".doc",
		"$KV." + n.upper + "_STATE_0.=pos." + n.mark,
		"$KV." + n.upper + "_PROGRAMS.rule.space." + n.mark,
		"$KV." + n.upper + "_PROGRAMS.version." + n.mark + ".1",
		"$KV." + n.upper + "_PROGRAMS.rewind." + n.mark,
		"$KV." + n.upper + "_PROGRAMS.backup." + n.mark,
		"$KV." + n.upper + "_WORKERS." + n.mark,
	}
}

// requests are requests of the JetStream API that change something, about a stream, without the prefix.
func requests(stream string) []string {
	return []string{
		"STREAM.CREATE." + stream, "STREAM.UPDATE." + stream, "STREAM.DELETE." + stream, "STREAM.PURGE." + stream, "STREAM.MSG.DELETE." + stream,
		"STREAM.SNAPSHOT." + stream, "STREAM.RESTORE." + stream, "STREAM.LEADER.STEPDOWN." + stream, "STREAM.PEER.REMOVE." + stream,
		"CONSUMER.CREATE." + stream, "CONSUMER.CREATE." + stream + ".spy", "CONSUMER.DURABLE.CREATE." + stream + ".spy", "CONSUMER.DELETE." + stream + ".spy",
		"CONSUMER.LEADER.STEPDOWN." + stream + ".spy", "CONSUMER.PAUSE." + stream + ".spy", "CONSUMER.RESET." + stream + ".spy", "CONSUMER.UNPIN." + stream + ".spy",
		"META.LEADER.STEPDOWN", "SERVER.REMOVE", "ACCOUNT.PURGE.SETTLE",
	}
}

// looks are requests of the JetStream API that read, about a stream, without the prefix.
func looks(stream string) []string {
	return []string{
		"INFO", "STREAM.NAMES", "STREAM.LIST", "STREAM.INFO." + stream, "STREAM.MSG.GET." + stream, "DIRECT.GET." + stream, "DIRECT.GET." + stream + ".x",
		"CONSUMER.NAMES." + stream, "CONSUMER.LIST." + stream, "CONSUMER.INFO." + stream + ".spy", "CONSUMER.MSG.NEXT." + stream + ".spy",
	}
}

// questions are subjects whose messages are answered, by servers or by processes of Settle.
func (n *names) questions() (all []string) {
	for _, api := range n.apis() {
		for _, r := range slices.Concat(looks(n.upper+"_LANE_0"), looks(n.upper+"_LOG_0"), looks("KV_"+n.upper+"_PROGRAMS"), requests(n.decoy)) {
			all = append(all, api+r)
		}
	}
	for _, endpoint := range []string{"tree", "receipt", "dead", "get", "watch", "read", "status", "spaces", "why", "lane", "graph", "top-w1", "asked-w1", n.mark} {
		all = append(all, n.prefix+".api."+endpoint)
	}
	for _, verb := range []string{"PING", "INFO", "STATS"} {
		all = append(all, "$SRV."+verb, "$SRV."+verb+".settle")
	}
	return append(all, n.prefix+".own.0", n.prefix+".ping.w1", n.prefix+".demand.0", n.prefix+".rollcall.0",
		"$SYS.REQ.USER.INFO", "$SYS.REQ.SERVER.PING", "$SYS.REQ.ACCOUNT.PING", "$SYS.REQ.SERVER.PING.JSZ")
}

// apis are the prefixes under which the JetStream API may be reached.
func (n *names) apis() []string { return []string{"$JS.API.", n.prefix + ".js."} }

// commands are the requests of the API that do harm, and its own subjects of acknowledgement and of flow control.
func (n *names) commands() (all []string) {
	for _, api := range n.apis() {
		for _, r := range requests(n.decoy) {
			all = append(all, api+r)
		}
	}
	return append(all, "$JS.ACK."+n.decoy+".spy.1.1.1.1.0", "$JS.FC."+n.decoy+".spy.1", "$JS.SNAPSHOT.RESTORE."+n.decoy+".x")
}

// replies are subjects that an answer should not reach.
func (n *names) replies() []string {
	return slices.Concat(n.stored(), n.commands(), []string{n.prefix + ".feed.0." + n.mark, "_INBOX." + n.mark + ".x", "_R_." + n.mark, n.prefix + ".api.tree", "$SRV.PING"})
}

// headers are those that servers or Settle act on, with a value that would do harm.
func (n *names) headers() [][2]string {
	target := n.stored()[0]
	return [][2]string{
		{"Settle-Position", "1"},
		{"Settle-Term", "9"},
		{"Settle-Prev-Term", "8"},
		{"Settle-Depth", "7"},
		{"Settle-Invalid", "gone"},
		{"Settle-Replay-Key", "5"},
		{"Settle-Fill", "1"},
		{"Settle-Commit", "w/1/1/n"},
		{"Settle-Seq", "1"},
		{"settle-position", "3"},
		{"Nats-Rollup", "all"},
		{"Nats-Rollup", "sub"},
		{"Nats-TTL", "1s"},
		{"Nats-Msg-Id", n.mark},
		{"Nats-Expected-Stream", n.decoy},
		{"Nats-Expected-Last-Sequence", "0"},
		{"Nats-Expected-Last-Subject-Sequence-Subject", target},
		{"Nats-Batch-Id", n.mark},
		{"Nats-Batch-Commit", "1"},
		{"Nats-Schedule", "@every 1s"},
		{"Nats-Schedule-Target", target},
		{"Nats-Incr", "1"},
		{"Nats-Marker-Reason", "Purge"},
		{"KV-Operation", "PURGE"},
		{"Nats-Trace-Dest", target},
		{"Nats-Trace-Only", "true"},
		{"Nats-Request-Info", `{"acc":"SETTLE","user":"operator"}`},
		{"Nats-Required-Api-Level", "99"},
		{"Status", "503"},
		{"traceparent", strings.Repeat("9", 1<<10)},
	}
}

// listens are patterns that show what is none of a user's business.
func (n *names) listens() []string {
	return []string{">", "$JS.>", "$KV.>", "$SRV.>", "$SYS.>", "_R_.>", n.prefix + ".>", n.prefix + ".lane.>", n.prefix + ".log.>", n.prefix + ".send.>", n.prefix + ".demand.*", n.prefix + ".api.>", n.prefix + ".own.>", n.prefix + ".ping.*"}
}
