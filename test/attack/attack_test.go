package attack_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/settlehq/settle/bus/roles"
	"github.com/settlehq/settle/test/attack"
)

// principal is a client that sends in the name of alice, as deploy/README.md says.
const principal = `{ user: principal, password: "principal1", permissions: { publish: { allow: ["settle.send.*.*.*.*.alice", "settle.api.get.alice"] }, subscribe: { allow: ["_INBOX_principal.>"] } } }`

const readerLine = "      { user: reader, password: $SETTLE_READER_PASSWORD, permissions: $SETTLE_READER }\n"

// attackAs makes all attempts as users of the roles outside.
func attackAs(t *testing.T, d *deployment, users ...string) *attack.Report {
	t.Helper()
	p := attack.Plan{Admin: d.admin, Log: t.Output()}
	for _, user := range users {
		a := attack.Attacker{Name: user, Conn: d.attacker(user)}
		if user == "principal" || user == "alice" {
			a.Principal = "alice"
		}
		p.Attackers = append(p.Attackers, a)
	}
	report, err := attack.Run(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// No user outside changes anything in the streams but by the events that it may send, whatever it publishes or asks.
func TestAttack_NoRoleOutsideHasADeputy(t *testing.T) {
	t.Parallel()
	d := start(t, readerLine, readerLine+"      "+principal+"\n")
	report := attackAs(t, d, roles.Client, roles.Reader, "principal")
	for _, b := range report.Breaches {
		t.Error(b)
	}
	if report.Attempts < 10_000 || report.Refused < 100 || report.Refused > report.Attempts-1000 {
		t.Errorf("%d attempts, of which %d were refused: it has not tried what it should", report.Attempts, report.Refused)
	}
	if got := d.count(d.as(roles.Client), "untouched"); got != "absent" {
		t.Errorf("a document of another space is %s", got)
	}
}

// The adversary finds every border that is missing.
func TestAttack_GoesRedWithoutItsBorder(t *testing.T) {
	t.Parallel()
	const clientLine = "      { user: client, password: $SETTLE_CLIENT_PASSWORD, permissions: $SETTLE_CLIENT }\n"
	const operatorLine = "      { user: operator, password: $SETTLE_OPERATOR_PASSWORD, permissions: $SETTLE_OPERATOR }\n"
	inside := func(permissions string) []string {
		return []string{clientLine, strings.Replace(clientLine, "user: client", "user: spare", 1), operatorLine, operatorLine + strings.Replace(clientLine, "$SETTLE_CLIENT }", permissions+" }", 1)}
	}
	for _, c := range []struct {
		name   string
		weaken []string
		groups []string // in which it finds something
	}{
		{
			"a client in the account of the streams, with the rights to read it",
			inside(`{ publish: { allow: ["$JS.API.DIRECT.GET.>", "$JS.API.STREAM.INFO.*", "settle.api.>", "settle.send.*.*.*.*"] }, subscribe: { allow: ["_INBOX.>"] } }`),
			[]string{attack.Answers},
		},
		{
			"a client in that account, which may ask the server for its own rights, and no more",
			inside(`{ publish: { allow: ["$SYS.REQ.USER.INFO", "settle.send.*.*.*.*"] }, subscribe: { allow: ["_INBOX.>"] } }`),
			[]string{attack.Answers},
		},
		{
			"a client in that account, with the rights to find services",
			inside(`{ publish: { allow: ["$SRV.>", "settle.send.*.*.*.*"] }, subscribe: { allow: ["_INBOX.>"] } }`),
			[]string{attack.Answers},
		},
		{
			"a client with all rights in that account",
			inside(`{}`),
			[]string{attack.Messages, attack.Answers, attack.Subscriptions},
		},
		{
			"an export of the lanes, and the right to publish there",
			[]string{
				`{ service: "settle.demand.*", accounts: [SETTLE_CLIENTS] }`, `{ service: "settle.demand.*", accounts: [SETTLE_CLIENTS] }, { service: "settle.lane.>", accounts: [SETTLE_CLIENTS] }`,
				`{ service: { account: SETTLE, subject: "settle.demand.*" } }`, `{ service: { account: SETTLE, subject: "settle.demand.*" } }, { service: { account: SETTLE, subject: "settle.lane.>" } }`,
				"permissions: $SETTLE_CLIENT }", "}\n{ user: spare, password: spare1, permissions: $SETTLE_CLIENT }",
			},
			[]string{attack.Messages},
		},
		{
			"an export of the creation of consumers",
			[]string{
				`{ service: "settle.demand.*", accounts: [SETTLE_CLIENTS] }`, `{ service: "settle.demand.*", accounts: [SETTLE_CLIENTS] }, { service: "$JS.API.CONSUMER.>", accounts: [SETTLE_CLIENTS] }`,
				`{ service: { account: SETTLE, subject: "settle.demand.*" } }`, `{ service: { account: SETTLE, subject: "settle.demand.*" } }, { service: { account: SETTLE, subject: "$JS.API.CONSUMER.>" }, to: "settle.js.CONSUMER.>" }`,
				"permissions: $SETTLE_CLIENT }", "}\n{ user: spare, password: spare1, permissions: $SETTLE_CLIENT }",
			},
			[]string{attack.Messages},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			report := attackAs(t, start(t, c.weaken...), roles.Client)
			for _, group := range c.groups {
				if !slices.ContainsFunc(report.Breaches, func(b attack.Breach) bool { return b.Group == group }) {
					t.Errorf("nothing is found among the %s; found are %v", group, report.Breaches)
				}
			}
		})
	}
}

// It finds a user that sees where others are answered.
func TestAttack_GoesRedWithSharedInboxes(t *testing.T) {
	t.Parallel()
	report := attackAs(t, start(t, `"_INBOX_reader.>"`, `"_INBOX.>"`), roles.Reader)
	if len(report.Breaches) != 1 || !strings.Contains(report.Breaches[0].What, "_INBOX.>") {
		t.Errorf("found are %v", report.Breaches)
	}
}
