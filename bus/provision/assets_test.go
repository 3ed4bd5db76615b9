package provision

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle/bus/internal/bustest"
	"github.com/settlehq/settle/bus/internal/wire"
)

func testAssets() []Spec {
	pr := &Provisioner{Streams: &wire.Streams{Link: wire.NewLink(wire.LinkConfig{Version: "test", Prefix: "settle", Log: slog.New(slog.DiscardHandler)})}}
	return pr.Specs(1)
}

// For each altered setting on which a guarantee rests, the error names the stream and the setting, the
// present and the required value, what would break, and the remedy.
func TestEveryAlteredSettingIsDetected(t *testing.T) {
	for i, a := range testAssets() {
		if broken := a.Compare(a.Config); len(broken) > 0 {
			t.Fatalf("%s does not pass its own rules: %v", a.Component, broken)
		}
		for _, r := range a.Rules {
			t.Run(a.Component+"/"+bustest.PlainSetting(r.Name), func(t *testing.T) {
				alter := bustest.Alterations[bustest.PlainSetting(r.Name)]
				if alter == nil {
					t.Fatalf("no alteration for rule %q", r.Name)
				}
				found := testAssets()[i].Config
				alter(&found)
				wantAssetError(t, a.Compare(found), a.Config.Name, r.Name)
				if refuses := len(a.check(found)) == 1; refuses != (r.effect == refused) {
					t.Errorf("programs refuse the stream: %v", refuses)
				}
			})
		}
	}
}

func wantAssetError(t *testing.T, errs []*AssetError, stream, setting string) {
	t.Helper()
	if len(errs) != 1 {
		t.Fatalf("got %v, want one AssetError", errs)
	}
	e := errs[0]
	if e.Stream != stream || e.Setting != setting || e.Found == e.Wanted || e.Breaks == "" || e.Fix == "" {
		t.Errorf("got %+v", e)
	}
	for _, part := range []string{e.Stream, e.Setting, e.Found, e.Wanted, e.Breaks, e.Fix} {
		if !strings.Contains(e.Error(), part) {
			t.Errorf("%q does not contain %q", e, part)
		}
	}
}

// Each asset has the rules that its guarantees need.
func TestRulesOfAssets(t *testing.T) {
	for _, a := range testAssets() {
		var has []string
		for _, r := range a.Rules {
			has = append(has, bustest.PlainSetting(r.Name))
		}
		var must []string
		switch a.Component {
		case "lane":
			must = []string{"discard policy", "discard per subject", "messages per subject", "maximum age", "roll-up", "deletes denied", "message TTL", "message schedules", "storage", "mirror", "sources", "maximum messages", "duplicate window", "maximum consumers", "purges denied"}
		case "log":
			must = []string{"discard policy", "messages per subject", "maximum age", "maximum messages", "maximum bytes", "roll-up", "deletes denied", "message TTL", "message schedules", "republish", "storage", "mirror", "sources", "duplicate window", "maximum consumers", "purges denied"}
		case "state":
			must = []string{"messages per subject", "maximum age", "maximum messages", "maximum bytes", "message TTL", "deletes denied", "storage", "discard per subject", "republish", "purges denied"}
		case "dead":
			must = []string{"discard policy", "maximum messages", "maximum bytes", "message TTL"}
		case "workers":
			must = []string{"maximum age", "maximum messages", "maximum bytes", "discard per subject", "retention", "republish"}
		case "programs":
			must = []string{"discard policy", "maximum age", "discard per subject", "maximum messages", "maximum bytes"}
		}
		for _, setting := range must {
			if !slices.Contains(has, setting) {
				t.Errorf("%s has no rule about %s", a.Component, setting)
			}
		}
	}
}

// All altered settings are reported at once, not one after the other as the operator corrects them.
func TestCheck_ReportsEachAlteredSetting(t *testing.T) {
	for _, a := range testAssets() {
		found := a.Config
		found.Storage, found.NoAck, found.Sealed = jetstream.MemoryStorage, true, true
		if errs := a.check(found); len(errs) != 3 {
			t.Errorf("%s: of three altered settings the check reports %v", a.Component, errs)
		}
	}
}

// A lane may have a limit on its bytes that leaves room for the largest event: it then refuses new events. A
// limit on its messages also counts events between spaces, and the text explains that.
func TestLaneMayBeBounded(t *testing.T) {
	const maxPayload = 1 << 20
	for _, a := range testAssets() {
		if a.Component != "lane" {
			continue
		}
		found := a.Config
		found.MaxBytes = maxPayload
		if broken, narrow := a.Compare(found), a.Narrow(found, maxPayload); len(broken) > 0 || narrow != nil {
			t.Error(broken, narrow)
		}
		found.MaxBytes--
		if broken, narrow := a.Compare(found), a.Narrow(found, maxPayload); len(broken) > 0 || narrow == nil || !narrow.Limits || narrow.Refused {
			t.Error(broken, narrow)
		}
		found.MaxMsgs = 1 << 20
		if broken := a.check(found); len(broken) > 0 {
			t.Error(broken)
		}
	}
}

// Announcements may be kept longer, as in deployments of earlier versions, and a server may remember message
// ids for a shorter time than requested.
func TestHarmlessDifferencesAreNotReported(t *testing.T) {
	for _, a := range testAssets() {
		found := a.Config
		if found.Duplicates = 50 * time.Millisecond; a.Component == "workers" {
			found.MaxAge = 0
		}
		if broken := a.Compare(found); len(broken) > 0 {
			t.Errorf("%s: %v", a.Component, broken)
		}
	}
}

// The advice for restoring a setting names the stream, and the flag of the nats command if there is one.
func TestFixes_DescribeHowToRestoreASetting(t *testing.T) {
	assets := testAssets()
	fix := func(component string, s setting) string {
		for _, a := range assets {
			if a.Component == component {
				return s.Fix(a.Config)
			}
		}
		return ""
	}
	for want, got := range map[string]string{
		"Set it back with `nats stream edit SETTLE_LANE_0 --max-msgs=-1`":                                                              fix("lane", setMessages),
		"Set it back with `nats stream edit SETTLE_LANE_0 --max-age=0s`":                                                               fix("lane", setAge),
		"Set it back with `nats stream edit KV_SETTLE_WORKERS --max-age=1h0m0s`":                                                       fix("workers", setMemberAge),
		"Set it back with `nats stream edit SETTLE_LANE_0 --max-msgs-per-subject=1`":                                                   fix("lane", setPerSubject),
		"Set it back with `nats stream edit SETTLE_LOG_0 --max-msgs-per-subject=-1`":                                                   fix("log", setPerSubject),
		"Set it back with `nats stream edit SETTLE_LANE_0 --discard-per-subject`":                                                      fix("lane", setDiscardEach),
		"Set it back with `nats stream edit KV_SETTLE_STATE_0 --no-discard-per-subject`":                                               fix("state", setDiscardEach),
		"Set it back with `nats stream edit SETTLE_LOG_0 --no-allow-rollup`":                                                           fix("log", setRollup),
		"Set it back with `nats stream edit SETTLE_LANE_0 --subjects 'settle.lane.0.*.*.*,settle.send.0.*.*.*,settle.send.0.*.*.*.*'`": fix("lane", setSubject),
		"`settle provision` adds them": fix("lane", setSends),
		"Set it back with `nats stream edit SETTLE_LOG_0 --republish-source='settle.log.0.*' --republish-destination='settle.feed.0.{{wildcard(1)}}'`": fix("log", setRepublish),
		"Set it back with `nats stream edit SETTLE_LANE_0 --interactive`, which opens an editor: no republish":                                         fix("lane", setRepublish),
		"Set it back with `nats stream edit SETTLE_LANE_0 --interactive`, which opens an editor: metadata settle.io/schema: \"1\"":                     fix("lane", setSchema),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := fix("lane", setPurges); !strings.HasPrefix(got, "The server does not change this back") {
		t.Errorf("what cannot be restored: %q", got)
	}
}
