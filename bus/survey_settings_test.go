package bus

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// impossible are alterations that a server does not take, of any stream of ours: of a mirror and of counters, it does
// not take the other settings beside them.
var impossible = map[string]bool{"mirror": true, "counters": true}

// Whatever setting of a stream is altered on the server, by an edit or by making the stream anew, the survey names it, and
// what is there and wanted. What is said to be set back can be: the server takes the stream as it was.
func TestSurvey_EveryAlteredSettingIsFound(t *testing.T) {
	b := embeddedBus(t, Config{})
	assets := b.assets(1)
	s := &surveyor{b: b, Survey: &Survey{Prefix: "settle"}}
	tried := map[string]int{}
	for i := range assets {
		a := &assets[i]
		for _, r := range a.rules {
			name := plainSetting(r.name)
			altered := a.config
			altered.Metadata = maps.Clone(altered.Metadata)
			altered.Subjects = slices.Clone(altered.Subjects)
			alterations[name](&altered)
			if name == "message schedules" { // which a server does not take with the policy that we have
				altered.Discard = jetstream.DiscardOld
			}
			if altered.DenyPurge { // likewise, with roll-ups
				altered.AllowRollup = false
			}
			if altered.Discard == jetstream.DiscardOld {
				altered.DiscardNewPerSubject = false // which goes with the other policy only
			}
			_, err := b.js.UpdateStream(t.Context(), altered)
			if err != nil { // this cannot be edited
				err = made(t, b, altered)
			}
			if (err != nil) != impossible[name] {
				t.Fatalf("%s, %s: the server says %v", a.component, name, err)
			}
			if err == nil {
				tried[name]++
				found := s.stream(t.Context(), *a)
				if !slices.ContainsFunc(found.Broken, func(e *AssetError) bool { return e.Setting == r.name && e.Stream == a.config.Name }) || found.Unseen != nil {
					t.Errorf("%s, %s: the survey finds %v, %v", a.component, name, found.Broken, found.Unseen)
				}
				_, err = b.js.UpdateStream(t.Context(), a.config)
				if stays := strings.HasPrefix(r.fix(a.config), "The server does not"); stays != (err != nil) {
					t.Errorf("%s, %s: to set it back ends with %v, and said is %s", a.component, name, err, r.fix(a.config))
				}
			}
			if err != nil {
				if err := made(t, b, a.config); err != nil {
					t.Fatal(err)
				}
			}
			if found := s.stream(t.Context(), *a); len(found.Broken) > 0 || found.Unseen != nil || found.Missing {
				t.Fatalf("%s, %s: after it was set back: %+v", a.component, name, found)
			}
		}
	}
	for name := range alterations { // any order: each by itself
		if tried[name] == 0 && !impossible[name] {
			t.Errorf("%s was not altered", name)
		}
	}
}

// made makes a stream anew.
func made(t *testing.T, b *Bus, c jetstream.StreamConfig) error {
	t.Helper()
	if err := b.js.DeleteStream(t.Context(), c.Name); err != nil && !strings.Contains(err.Error(), "not found") {
		t.Fatal(err)
	}
	_, err := b.js.CreateStream(t.Context(), c)
	return err
}
