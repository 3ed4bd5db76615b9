package cookbook

import (
	"cmp"
	"slices"

	"github.com/settlehq/settle"
)

// Score is a player's standing.
type Score struct {
	Player string `json:"player"`
	Points int    `json:"points"`
}

var (
	// Of a player.
	wins   = settle.NewCell[int]("wins")
	draws  = settle.NewCell[int]("draws")
	points = settle.NewDerived[int]("points")
	won    = settle.NewTrigger("won")

	// Of the league.
	players = settle.NewRows[struct{}]("players")
	scores  = settle.NewDerivedRows[Score]("scores")
	top     = settle.NewDerived[[]Score]("top")
	join    = settle.NewStream[string]("join")
)

func player() *settle.Program {
	p := settle.NewProgram("player")
	won.Handle(p, func(tx *settle.Tx) error {
		wins.Update(tx, func(n *int) { *n++ })
		return nil
	})
	points.Compute(p, func(v *settle.View) (int, error) { return 3*wins.Get(v) + draws.Get(v), nil })
	return p
}

func league() *settle.Program {
	p := settle.NewProgram("league")
	join.Handle(p, func(tx *settle.Tx, name string) error {
		players.Set(tx, name, struct{}{})
		return nil
	})
	scores.Compute(p, settle.Each(players, func(v *settle.View, row settle.Row[struct{}]) (Score, error) {
		return Score{Player: row.Key, Points: points.In(row.Key).Get(v)}, nil
	}))
	top.Compute(p, func(v *settle.View) ([]Score, error) {
		var all []Score
		for _, s := range scores.All(v) {
			all = append(all, s)
		}
		slices.SortFunc(all, func(a, b Score) int {
			return cmp.Or(cmp.Compare(b.Points, a.Points), cmp.Compare(a.Player, b.Player))
		})
		return all[:min(len(all), 10)], nil
	})
	return p
}
