package test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/settlehq/settle"
)

// orders is the program of the races. It notes everything that it runs.
//
//	order  counts itself, starts a piece and sends a note to its own space and to
//	       "ledger". It fails if the document closed says so, and for now if broken does.
//	note   is a follow-up: it reads nothing that an order writes.
//	tick   changes what every piece reads.
//
// A piece is a member of the document pieces, and an effect that the effect
// launcher makes of it.
func orders(notes *notebook) *settle.Program {
	return settle.NewProgram("orders").
		Handle("order", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
			notes.write("order %s", ev.ID)
			if closed, _ := tx.Get("closed").AsBool(); closed {
				return settle.Value{}, errors.New("closed")
			}
			if broken, _ := tx.Get("broken").AsBool(); broken {
				return settle.Value{}, settle.Transient(errors.New("broken"))
			}
			n := increment(tx, "count")
			tx.Set("pieces", n, ev.ID)
			what := fmt.Sprintf("%s makes %d", ev.ID, n)
			tx.Send(tx.Space(), "note", what)
			tx.Send("ledger", "note", what)
			return settle.ValueOf(n)
		}).
		Handle("note", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
			what, _ := ev.Payload.AsString()
			notes.write("note in %s: %s", tx.Space(), what)
			increment(tx, "noted")
			return ev.Payload, nil
		}).
		Handle("tick", func(tx *settle.Tx, _ *settle.Event) (settle.Value, error) {
			increment(tx, "ticks")
			return settle.Value{}, nil
		}).
		Effect("launcher", func(tx *settle.Tx) error {
			ids := tx.GetShallow("pieces").Keys()
			notes.write("%s has the pieces %s", tx.Space(), strings.Join(ids, " "))
			for _, id := range ids {
				tx.Node(piece(notes, id))
			}
			return nil
		})
}

func piece(notes *notebook, id string) settle.NodeSpec {
	return settle.NodeSpec{ID: "piece-" + id, Kind: settle.Effect, Run: func(tx *settle.Tx) (settle.Value, error) {
		ticks, _ := tx.Get("ticks").AsInt()
		notes.write("piece %s at tick %d", id, ticks)
		return settle.Value{}, nil
	}}
}

func increment(tx *settle.Tx, doc string) int64 {
	n, _ := tx.Get(doc).AsInt()
	tx.Set(doc, n+1)
	return n + 1
}
