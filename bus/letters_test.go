package bus

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus/faults"
	"github.com/settlehq/settle/bus/internal/bustest"
	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/model"
)

func letter(event string) *model.DeadLetter {
	return &model.DeadLetter{Version: model.DeadVersion, Space: "cart", Stream: "add", Event: event, Error: "no"}
}

// A client with the right to publish there can store anything under any name.
func TestReadDead_ALetterUnderAWrongNameIsSkipped(t *testing.T) {
	t.Parallel()
	b := embeddedBus(t, Config{})
	body, err := letter("e1").Encode()
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.JetStream().Publish(t.Context(), b.streams.Names.Dead("cart", "add", "e2"), body)
	if err := errors.Join(err, b.StoreDead(t.Context(), letter("e3"))); err != nil {
		t.Fatal(err)
	}
	letters, err := b.ReadDead(t.Context(), "", 0, 10)
	if err != nil || len(letters) != 1 || letters[0].Event != "e3" {
		t.Errorf("read %+v, %v, want that of e3", letters, err)
	}
}

// A coordinator that restarts writes its letters again.
func TestBury_AnExistingLetterIsASuccess(t *testing.T) {
	t.Parallel()
	b := unconnected(Config{})
	r := b.judgeLetter("any")(wire.Answer{Outcome: wire.Moved, Seq: 7}, false)
	if r.Again || r.Lookup != nil || r.Err != nil {
		t.Errorf("the result is %+v", r)
	}
}

// The server lists a limited number of subjects per answer.
func TestListDead_OfMoreThanFitInOneAnswer(t *testing.T) {
	t.Parallel()
	b := embeddedBus(t, Config{})
	for _, event := range []string{"e1", "e2", "e3"} {
		if err := b.StoreDead(t.Context(), letter(event)); err != nil {
			t.Fatal(err)
		}
	}
	answers := 0
	relayed(t, b, func(nc *nats.Conn, request string, m *nats.Msg) bool {
		if !isInfo(request) || !strings.Contains(string(m.Data), "subjects_filter") {
			return false
		}
		answers++
		return bustest.Amend(nc, request, m, func(page *map[string]any) { // the first subject of those that are left
			state, _ := (*page)["state"].(map[string]any)
			subjects, _ := state["subjects"].(map[string]any)
			for _, subject := range slices.Sorted(maps.Keys(subjects))[min(1, len(subjects)):] {
				delete(subjects, subject)
			}
		})
	})
	names, err := b.ListDead(t.Context(), "")
	if err != nil || len(names) != 3 || answers < 3 {
		t.Errorf("listed %v in %d answers, %v", names, answers, err)
	}
}

// A record replaces the revision that its writer has read, or is refused. A record that an attempt with a
// lost answer has stored is recognized as the writer's own.
func TestSaveRecord_OverARevisionAndInDoubt(t *testing.T) {
	t.Parallel()
	lost := false
	b := embeddedBus(t, Config{Faults: func(a faults.Attempt) faults.Fault {
		if a.Op == faults.OpRecord && a.Try == 1 && lost {
			return faults.DropAck
		}
		return faults.Deliver
	}})
	first := model.Record{Key: "program.p", Data: []byte("1")}
	rev, err := b.SaveRecord(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.SaveRecord(t.Context(), model.Record{Key: "program.p", Data: []byte("2")}); !errors.Is(err, model.ErrOutdated) {
		t.Errorf("a record of another is overwritten: %v", err)
	}
	lost = true
	next, err := b.SaveRecord(t.Context(), model.Record{Key: "program.p", Data: []byte("3"), Rev: rev})
	if err != nil || next <= rev {
		t.Errorf("revision %d, %v", next, err)
	}
}

func TestMostOpen_TiesAreOrderedByName(t *testing.T) {
	t.Parallel()
	var names []model.DeadName
	for _, stream := range []string{"d", "b", "a", "c", "b", "a"} {
		names = append(names, model.DeadName{Space: "s", Stream: stream, Event: "e" + string(rune('0'+len(names)))})
	}
	if stream, n := mostOpen(names, model.NewDeadIndex(names)); stream != "a" || n != 2 {
		t.Errorf("%d of %s", n, stream)
	}
}
