package settletest_test

import (
	"fmt"
	"sync"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/settletest"
	"github.com/settlehq/settle/space"
)

// A write outside of a node's declared writes fails the test, unless it is allowed.
func ExampleAllowOutsideWrites() {
	p := settle.NewProgram("p").Node(space.NodeSpec{
		ID: "copy", Kind: space.Computation, Writes: []space.Address{{Doc: "a"}},
		Run: func(tx *settle.Tx) (settle.Value, error) {
			tx.Set("a", tx.Get("in"))
			tx.Set("b", tx.Get("in"))
			return settle.Value{}, nil
		},
	})
	s := settletest.New(settletest.Must, p, settletest.AllowOutsideWrites("copy")).Space("s")
	s.Set("in", 1)
	fmt.Println(s.Get("a"), s.Get("b"))
	// Output: 1 1
}

// Two nodes that invalidate each other are held back, which fails the test, unless it is allowed.
func ExampleAllowCircles() {
	left, right := settle.NewDerived[int]("left"), settle.NewDerived[int]("right")
	p := settle.NewProgram("p")
	left.Compute(p, func(v *settle.View) (int, error) { return right.Get(v) + 1, nil })
	right.Compute(p, func(v *settle.View) (int, error) { return left.Get(v) + 1, nil })

	s := settletest.New(settletest.Must, p, settletest.AllowCircles(), settletest.WithoutValidator()).Space("s")
	settletest.Watch(s, left)
	fmt.Println("left has run", s.Runs("left"), "times and is held back")
	// Output: left has run 10 times and is held back
}

// A function that blocks ends the test, unless it is allowed. Here it takes a lock that is free.
func ExampleAllowBlocking() {
	var mu sync.Mutex
	now := settle.NewDerived[string]("now")
	p := settle.NewProgram("p")
	now.Compute(p, func(*settle.View) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		return time.Unix(0, 0).UTC().Format(time.Kitchen), nil
	})
	s := settletest.New(settletest.Must, p, settletest.AllowBlocking()).Space("s")
	fmt.Println(now.Get(s))
	// Output: 12:00AM
}

// logging is a TB that prints what a test would log.
type logging struct{ settletest.TB }

func (logging) Logf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// Output of the program goes to the test's log.
func ExampleWithLog() {
	p := settle.NewProgram("p")
	greet := settle.NewStream[string]("greet")
	greet.Handle(p, func(tx *settle.Tx, name string) error {
		tx.Log("hello", "name", name)
		return nil
	})
	w := settletest.New(logging{settletest.Must}, p, settletest.WithLog(), settletest.WithoutValidator())
	settletest.Call(w.Space("s"), greet, "Ann")
	// Output: s: greet sent-1: hello name=Ann
}
