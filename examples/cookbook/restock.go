package cookbook

import (
	"github.com/settlehq/settle"
)

// Level is how many pieces a warehouse has.
type Level struct {
	Warehouse string `json:"warehouse"`
	Pieces    int    `json:"pieces"`
}

var (
	// Of a product, which is a space.
	levels   = settle.NewRows[int]("levels") // by warehouse, each of which is a space
	promised = settle.NewCell[int]("promised")
	minimum  = settle.NewCell[int]("minimum")
	short    = settle.NewDerived[bool]("short")
	ordered  = settle.NewCell[bool]("ordered") // whether an order was sent since the product was short
	level    = settle.NewStream[Level]("level")
	promise  = settle.NewStream[int]("promise")
	atLeast  = settle.NewStream[int]("at-least")

	// Of a warehouse, and of the supplier.
	pieces    = settle.NewRows[int]("pieces") // by product
	move      = settle.NewStream[Moved]("move")
	orderList = settle.NewCell[[]string]("orders")
	order     = settle.NewStream[struct{}]("order")
)

// Moved is a number of pieces of a product that come in, or go out.
type Moved struct {
	Product string `json:"product"`
	Pieces  int    `json:"pieces"`
}

// supplier is the space that gets the orders.
const supplier = "supplier"

func product() *settle.Program {
	p := settle.NewProgram("product")
	short.Compute(p, func(v *settle.View) (bool, error) {
		sum := 0
		for _, n := range levels.All(v) {
			sum += n
		}
		return sum-promised.Get(v) < minimum.Get(v), nil
	})
	level.Handle(p, func(tx *settle.Tx, l Level) error {
		levels.Set(tx, l.Warehouse, l.Pieces)
		return checkStock(tx)
	})
	promise.Handle(p, func(tx *settle.Tx, n int) error {
		promised.Update(tx, func(all *int) { *all += n })
		return checkStock(tx)
	})
	atLeast.Handle(p, func(tx *settle.Tx, n int) error {
		minimum.Set(tx, n)
		return checkStock(tx)
	})
	return p
}

// checkStock sends an order if the product has become short with this transaction. Each handler that changes what short depends on calls it.
func checkStock(tx *settle.Tx) error {
	now := short.Get(tx) // computed from what this transaction has written
	if now == ordered.Get(tx) {
		return nil
	}
	ordered.Set(tx, now)
	if now {
		order.Send(tx, settle.To(supplier), struct{}{})
	}
	return nil
}

func warehouse() *settle.Program {
	p := settle.NewProgram("warehouse")
	move.Handle(p, func(tx *settle.Tx, m Moved) error {
		pieces.Update(tx, m.Product, func(n *int) { *n += m.Pieces })
		level.Send(tx, settle.To(m.Product), Level{Warehouse: tx.Space(), Pieces: pieces.Get(tx, m.Product)})
		return nil
	})
	return p
}

func supplies() *settle.Program {
	p := settle.NewProgram("supplier")
	order.Handle(p, func(tx *settle.Tx, _ struct{}) error {
		orderList.Update(tx, func(l *[]string) { *l = append(*l, tx.Event().Origin()) })
		return nil
	})
	return p
}
