package board

import (
	"fmt"
	"slices"
	"strings"

	"github.com/settlehq/settle"
)

type (
	// Card is a card of the board. Its owner is a link to a derived document in that person's
	// space.
	Card struct {
		Title  string             `json:"title"`
		Points int64              `json:"points"`
		Owner  settle.Ref[string] `json:"owner"`
	}
	// Tile is a card as it is shown.
	Tile struct {
		Title  string `json:"title"`
		Points int64  `json:"points"`
		Owner  string `json:"owner"`
	}
	// Column is a column as it is shown.
	Column struct {
		Points int64  `json:"points"`
		Tiles  []Tile `json:"tiles"`
	}
	// Draft is a new card; Owner is the name of its owner's space, or "".
	Draft struct {
		Card   string `json:"card"`
		Title  string `json:"title"`
		Points int64  `json:"points"`
		Owner  string `json:"owner"`
	}
	// Shift moves a card to the end of a column.
	Shift struct {
		Card string `json:"card"`
		To   string `json:"to"`
	}
	// Person is the name and the team of a person.
	Person struct {
		Name string `json:"name"`
		Away bool   `json:"away"`
	}
)

// The names of boards, and of people.
var (
	Cards   = settle.NewRows[Card]("cards")        // by key
	Order   = settle.NewRows[[]string]("order")    // the keys of the cards in a column, by column
	Tiles   = settle.NewDerivedRows[Tile]("tiles") // by the keys of Cards
	Columns = settle.NewDerivedRows[Column]("columns")
	Write   = settle.NewStream[[]Draft]("write")
	Move    = settle.NewStream[Shift]("move")

	Self   = settle.NewCell[Person]("self")
	Badge  = settle.NewDerived[string]("badge")
	Update = settle.NewStream[Person]("update")
)

// First is the column that cards begin in.
const First = "todo"

var team, person = newBoard(), newPerson()

// Programs returns the program of a space: spaces whose names begin with "board" are boards, the
// others are people.
func Programs(space string) *settle.Program {
	if strings.HasPrefix(space, "board") {
		return team
	}
	return person
}

func newBoard() *settle.Program {
	p := settle.NewProgram("board")
	Write.Handle(p, func(tx *settle.Tx, drafts []Draft) error {
		var added []string
		for _, d := range drafts {
			if !Cards.Exists(tx, d.Card) {
				added = append(added, d.Card)
			}
			Cards.Set(tx, d.Card, d.card())
		}
		Order.Update(tx, First, func(keys *[]string) { *keys = append(*keys, added...) })
		return nil
	})
	Move.Handle(p, func(tx *settle.Tx, s Shift) error {
		if !Cards.Exists(tx, s.Card) {
			return fmt.Errorf("there is no card %q", s.Card)
		}
		for column, keys := range Order.All(tx) {
			if i := slices.Index(keys, s.Card); i >= 0 {
				Order.Set(tx, column, slices.Delete(keys, i, i+1))
			}
		}
		Order.Update(tx, s.To, func(keys *[]string) { *keys = append(*keys, s.Card) })
		return nil
	})
	// One node per card, which reads its card and, over there, the badge of its owner.
	Tiles.Compute(p, settle.Each(Cards, func(v *settle.View, row settle.Row[Card]) (Tile, error) {
		c := row.Get(v)
		return Tile{Title: c.Title, Points: c.Points, Owner: c.Owner.Get(v)}, nil
	}))
	// One node per column, which reads the tiles of its cards.
	Columns.Compute(p, settle.Each(Order, func(v *settle.View, row settle.Row[[]string]) (Column, error) {
		var c Column
		for _, key := range row.Get(v) {
			if t, ok := Tiles.Lookup(v, key); ok { // its owner's badge may not have arrived yet
				c.Points += t.Points
				c.Tiles = append(c.Tiles, t)
			}
		}
		return c, nil
	}))
	return p
}

func (d Draft) card() Card {
	c := Card{Title: d.Title, Points: d.Points}
	if d.Owner != "" {
		c.Owner = Badge.In(d.Owner).Ref()
	}
	return c
}

func newPerson() *settle.Program {
	p := settle.NewProgram("person")
	Update.Handle(p, func(tx *settle.Tx, now Person) error {
		Self.Set(tx, now)
		return nil
	})
	Badge.Compute(p, func(v *settle.View) (string, error) {
		switch self, ok := Self.Lookup(v); {
		case !ok:
			return "", settle.NoValue
		case self.Away:
			return self.Name + " (away)", nil
		default:
			return self.Name, nil
		}
	})
	return p
}
