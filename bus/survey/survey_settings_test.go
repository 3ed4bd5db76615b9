package survey

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/internal/bustest"
	"github.com/settlehq/settle/bus/provision"
)

// impossible are alterations that a server refuses, for any stream of Settle: the other settings do not allow
// a mirror or counters.
var impossible = map[string]bool{"mirror": true, "counters": true}

// The survey names each setting of a stream that was changed on the server, by an edit or by recreating the
// stream, with its present and its required value. Every setting that it reports as restorable can be
// restored: the server accepts the former configuration.
func TestSurvey_EveryAlteredSettingIsFound(t *testing.T) {
	b, _ := deployed(t)
	assets := b.Provisioner.Specs(1)
	s := &surveyor{b: b, Survey: &Survey{Prefix: "settle"}}
	tried := map[string]int{}
	for i := range assets {
		a := &assets[i]
		for _, r := range a.Rules {
			name := bustest.PlainSetting(r.Name)
			altered := a.Config
			altered.Metadata = maps.Clone(altered.Metadata)
			altered.Subjects = slices.Clone(altered.Subjects)
			bustest.Alterations[name](&altered)
			if name == "message schedules" { // the server refuses these with the required policy
				altered.Discard = jetstream.DiscardOld
			}
			if altered.DenyPurge { // likewise, with roll-ups
				altered.AllowRollup = false
			}
			if altered.Discard == jetstream.DiscardOld {
				altered.DiscardNewPerSubject = false // only valid with the other policy
			}
			_, err := b.JetStream().UpdateStream(t.Context(), altered)
			if err != nil { // cannot be edited
				err = made(t, b, altered)
			}
			if (err != nil) != impossible[name] {
				t.Fatalf("%s, %s: the server returns %v", a.Component, name, err)
			}
			if err == nil {
				tried[name]++
				found := s.stream(t.Context(), *a)
				if !slices.ContainsFunc(found.Broken, func(e *provision.AssetError) bool { return e.Setting == r.Name && e.Stream == a.Config.Name }) || found.Unseen != nil {
					t.Errorf("%s, %s: the survey finds %v, %v", a.Component, name, found.Broken, found.Unseen)
				}
				_, err = b.JetStream().UpdateStream(t.Context(), a.Config)
				if stays := strings.HasPrefix(r.Fix(a.Config), "The server does not"); stays != (err != nil) {
					t.Errorf("%s, %s: restoring ends with %v, and the advice is %s", a.Component, name, err, r.Fix(a.Config))
				}
			}
			if err != nil {
				if err := made(t, b, a.Config); err != nil {
					t.Fatal(err)
				}
			}
			if found := s.stream(t.Context(), *a); len(found.Broken) > 0 || found.Unseen != nil || found.Missing {
				t.Fatalf("%s, %s: after it was restored: %+v", a.Component, name, found)
			}
		}
	}
	for name := range bustest.Alterations { // any order: each by itself
		if tried[name] == 0 && !impossible[name] {
			t.Errorf("%s was not altered", name)
		}
	}
}

// made recreates a stream.
func made(t *testing.T, b *bus.Bus, c jetstream.StreamConfig) error {
	t.Helper()
	if err := b.JetStream().DeleteStream(t.Context(), c.Name); err != nil && !strings.Contains(err.Error(), "not found") {
		t.Fatal(err)
	}
	_, err := b.JetStream().CreateStream(t.Context(), c)
	return err
}
