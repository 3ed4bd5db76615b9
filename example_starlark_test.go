package settle_test

import (
	"fmt"
	"log"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/program/star"
	"github.com/settlehq/settle/settletest"
)

// A program in a file, beside compiled ones.
func ExampleStarlark() {
	const counter = `
count = cell("count", {"n": 0})

def add(e):
    count.n += e.by
    return count.n

handle("add", add, payload = {"by": int})
compute("double", lambda: 2 * count.n)
`
	p, err := settle.Starlark(star.Source{
		Name: "counter", Entry: "counter.star", Files: map[string]string{"counter.star": counter},
	}, star.Options{})
	if err != nil {
		log.Fatal(err)
	}
	alice := settletest.New(settletest.Must, p).Space("alice")
	fmt.Println(alice.Call("add", map[string]int{"by": 2}), alice.Get("double"))
	fmt.Println(alice.Send("add", map[string]string{"by": "two"}).Error)
	// Output:
	// 2 4
	// counter.star:8:7: stream add: payload.by must be an integer, not a string
}
