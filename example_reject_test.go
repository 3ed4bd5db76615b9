package settle_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/settlehq/settle"
)

// A handler declines an event. What it has written is not kept, and the caller gets code, message and data.
func ExampleReject() {
	cars := settle.NewCell[int]("cars")
	park := settle.NewRequest[string, int]("park")
	p := settle.NewProgram("garages")
	park.Handle(p, func(tx *settle.Tx, _ string) (int, error) {
		cars.Update(tx, func(n *int) { *n++ })
		if cars.Get(tx) > 1 {
			return 0, settle.Reject("full", "no place is left", map[string]int{"places": 1})
		}
		return cars.Get(tx), nil
	})
	d, end := deployment(p)
	defer end()
	ctx, garage := context.Background(), d.Client().Space("garage")

	_, err := park.Call(ctx, garage, settle.ID("a"), "AB-1")
	fmt.Println(err)
	_, err = park.Call(ctx, garage, settle.ID("b"), "CD-2")
	fmt.Println(err)
	var no *settle.Rejection
	fmt.Println(errors.As(err, &no), no.Code, no.Message, no.Data)
	n, err := cars.Fetch(ctx, garage)
	fmt.Println(n, err)
	// Output:
	// <nil>
	// event b to garage/park rejected: full: no place is left
	// true full no place is left {"places":1}
	// 1 <nil>
}
