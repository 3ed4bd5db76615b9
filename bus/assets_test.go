package bus

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// alterations break one setting each, named as the error must name it.
var alterations = map[string]func(*jetstream.StreamConfig){
	"storage":          func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage },
	"persist mode":     func(c *jetstream.StreamConfig) { c.PersistMode = jetstream.AsyncPersistMode },
	"acknowledgements": func(c *jetstream.StreamConfig) { c.NoAck = true },
	"subjects":         func(c *jetstream.StreamConfig) { c.Subjects = append(c.Subjects, "other.>") },
	"subject transform": func(c *jetstream.StreamConfig) {
		c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: ">", Destination: "x.>"}
	},
	"direct get":             func(c *jetstream.StreamConfig) { c.AllowDirect = false },
	"mirror":                 func(c *jetstream.StreamConfig) { c.Mirror = &jetstream.StreamSource{Name: "OTHER"} },
	"sources":                func(c *jetstream.StreamConfig) { c.Sources = []*jetstream.StreamSource{{Name: "OTHER"}} },
	"sealed":                 func(c *jetstream.StreamConfig) { c.Sealed = true },
	"counters":               func(c *jetstream.StreamConfig) { c.AllowMsgCounter = true },
	"largest message":        func(c *jetstream.StreamConfig) { c.MaxMsgSize = 1000 },
	"schema":                 func(c *jetstream.StreamConfig) { c.Metadata[metaSchema] = "99" },
	"component":              func(c *jetstream.StreamConfig) { c.Metadata[metaComponent] = "another" },
	"partition count":        func(c *jetstream.StreamConfig) { c.Metadata[metaPartitions] = "3" },
	"horizon":                func(c *jetstream.StreamConfig) { c.Metadata[metaHorizon] = "99h0m0s" },
	"retention":              func(c *jetstream.StreamConfig) { c.Retention = jetstream.InterestPolicy },
	"discard policy":         func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld },
	"maximum age":            func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour },
	"message TTL":            func(c *jetstream.StreamConfig) { c.AllowMsgTTL = true },
	"subject delete markers": func(c *jetstream.StreamConfig) { c.SubjectDeleteMarkerTTL = time.Hour },
	"message schedules":      func(c *jetstream.StreamConfig) { c.AllowMsgSchedules = true },
	"deletes denied":         func(c *jetstream.StreamConfig) { c.DenyDelete = false },
	"messages per subject":   func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 7 },
	"discard per subject":    func(c *jetstream.StreamConfig) { c.DiscardNewPerSubject = false },
	"roll-up":                func(c *jetstream.StreamConfig) { c.AllowRollup = !c.AllowRollup },
	"republish":              func(c *jetstream.StreamConfig) { c.RePublish = &jetstream.RePublish{Source: ">", Destination: "x.>"} },
	"maximum messages":       func(c *jetstream.StreamConfig) { c.MaxMsgs = 1000 },
	"maximum bytes":          func(c *jetstream.StreamConfig) { c.MaxBytes = 1 << 20 },
}

func testAssets() []asset {
	b := &Bus{names: newNames("settle"), cfg: Config{Version: "test"}}
	return b.assets(1)
}

// plainSetting is a setting's name without what is said in brackets.
func plainSetting(setting string) string {
	plain, _, _ := strings.Cut(setting, " (")
	return plain
}

// Whatever of a guarantee's settings is altered, the error names stream and
// setting, what was found and what is wanted, what would break, and what to do.
func TestEveryAlteredSettingIsDetected(t *testing.T) {
	for i, a := range testAssets() {
		if broken := a.check(a.config); len(broken) > 0 {
			t.Fatalf("%s does not pass its own rules: %v", a.component, broken)
		}
		for _, r := range a.rules {
			t.Run(a.component+"/"+plainSetting(r.setting), func(t *testing.T) {
				alter := alterations[plainSetting(r.setting)]
				if alter == nil {
					t.Fatalf("no alteration for rule %q", r.setting)
				}
				found := testAssets()[i].config
				alter(&found)
				wantAssetError(t, a.check(found), a.config.Name, r.setting)
			})
		}
	}
}

func wantAssetError(t *testing.T, errs []error, stream, setting string) {
	t.Helper()
	var e *AssetError
	if len(errs) != 1 || !errors.As(errs[0], &e) {
		t.Fatalf("got %v, want one AssetError", errs)
	}
	if e.Stream != stream || e.Setting != setting || e.Found == e.Wanted || e.Breaks == "" || e.Fix == "" {
		t.Errorf("got %+v", e)
	}
	for _, part := range []string{e.Stream, e.Setting, e.Found, e.Wanted, e.Breaks, e.Fix} {
		if !strings.Contains(e.Error(), part) {
			t.Errorf("%q does not say %q", e, part)
		}
	}
}

// Each asset has the rules that its guarantees need.
func TestRulesOfAssets(t *testing.T) {
	for _, a := range testAssets() {
		var has []string
		for _, r := range a.rules {
			has = append(has, plainSetting(r.setting))
		}
		var must []string
		switch a.component {
		case "lane":
			must = []string{"discard policy", "discard per subject", "messages per subject", "maximum age", "roll-up", "deletes denied", "message TTL", "message schedules", "storage", "mirror", "sources"}
		case "log":
			must = []string{"discard policy", "messages per subject", "maximum age", "maximum messages", "maximum bytes", "roll-up", "deletes denied", "message TTL", "message schedules", "republish", "storage", "mirror", "sources"}
		case "state":
			must = []string{"messages per subject", "maximum age", "maximum messages", "maximum bytes", "message TTL", "deletes denied", "storage"}
		}
		for _, setting := range must {
			if !slices.Contains(has, setting) {
				t.Errorf("%s has no rule about %s", a.component, setting)
			}
		}
	}
}

// A lane may have a bound on its bytes: it refuses what is new.
func TestLaneMayBeBounded(t *testing.T) {
	for _, a := range testAssets() {
		if a.component != "lane" {
			continue
		}
		found := a.config
		found.MaxBytes, found.MaxMsgs = 1<<30, 1<<20
		if broken := a.check(found); len(broken) > 0 {
			t.Error(broken)
		}
	}
}
