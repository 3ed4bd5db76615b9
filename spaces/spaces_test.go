package spaces_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/spaces"
)

// One event reaches every space of a pattern, once, however often it is sent on.
func TestSend_OncePerSpaceAndResumable(t *testing.T) {
	t.Parallel()
	migrate := settle.NewRequest[int, int]("migrate")
	open := settle.NewTrigger("open")
	version := settle.NewCell[int]("version")
	p := settle.NewProgram("lots")
	open.Handle(p, func(*settle.Tx) error { return nil })
	migrate.Handle(p, func(tx *settle.Tx, by int) (int, error) {
		if tx.Space() == "lot-13" {
			return 0, errors.New("superstition")
		}
		version.Update(tx, func(n *int) { *n += by })
		return version.Get(tx), nil
	})
	d, err := settle.Start(t.Context(), settle.Config{Programs: settle.Always(p), Server: embedded.Config{StoreDir: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	ctx, c := t.Context(), d.Client()
	for _, space := range []string{"lot-1", "lot-2", "lot-13", "other"} {
		if err := open.Call(ctx, c.Space(space), settle.ID("o")); err != nil {
			t.Fatal(err)
		}
	}
	lots, e := settle.All("lot-*"), settle.Outgoing{Stream: "migrate", ID: settle.ID("m-2"), Payload: 2}
	var seen []string
	first, err := spaces.Send(ctx, c, lots, e, func(p spaces.Sent) { seen = append(seen, fmt.Sprint(p.Sent, "/", p.Spaces)) })
	if err != nil || first != (spaces.Sent{Spaces: 3, Sent: 3}) || strings.Join(seen, " ") != "0/3 1/3 2/3 3/3 3/3" {
		t.Fatalf("%+v, %v, progress %v", first, err, seen)
	}
	if err := open.Call(ctx, c.Space("lot-4"), settle.ID("o")); err != nil {
		t.Fatal(err)
	}
	if again, err := spaces.Send(ctx, c, lots, e, nil); err != nil || again != (spaces.Sent{Spaces: 4, Sent: 4, Before: 3}) {
		t.Errorf("again: %+v, %v", again, err)
	}
	ended, err := spaces.Await(ctx, c, lots, "migrate", e.ID, nil)
	if err != nil || ended.Outcomes[model.Handled] != 3 || ended.Outcomes[model.Failed] != 1 || len(ended.Failures) != 1 || ended.Failures[0] != (spaces.Failure{Space: "lot-13", Reason: "failed: superstition"}) {
		t.Errorf("%+v, %v", ended, err)
	}
	for space, want := range map[string]int{"lot-1": 2, "lot-2": 2, "lot-4": 2, "lot-13": 0, "other": 0} {
		got, err := version.Fetch(ctx, c.Space(space))
		if want == 0 && errors.Is(err, settle.ErrNotFound) {
			err = nil
		}
		if got != want || err != nil {
			t.Errorf("%s has version %d, want %d; %v", space, got, want, err)
		}
	}
	stopped, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := spaces.Send(stopped, c, lots, e, nil); err == nil {
		t.Error("a call whose context has ended reports success")
	}
	if _, err := spaces.Send(ctx, c, lots, settle.Outgoing{Stream: "migrate"}, nil); err == nil || !strings.Contains(err.Error(), "no id") {
		t.Errorf("without an id: %v", err)
	}
}
