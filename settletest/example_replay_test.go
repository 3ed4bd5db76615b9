package settletest_test

import (
	"errors"
	"fmt"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/settletest"
)

// `settle replay till-1 DIR` has written the recording.
func ExampleReplay() {
	taken := settle.NewCell[int]("taken")
	pay := settle.NewRequest[int, int]("pay")
	till := settle.NewProgram("till")
	pay.Handle(till, func(tx *settle.Tx, n int) (int, error) {
		if n < 0 {
			return 0, errors.New("nothing is owed")
		}
		taken.Set(tx, taken.Get(tx)+n)
		return taken.Get(tx), nil
	})
	w := settletest.Replay(settletest.Must, till, "testdata/till.jsonl")
	fmt.Println(taken.Get(w.Space("till-1")), w.Now().Format("15:04"), len(w.DeadLetters()))
	// Output: 35 10:05 1
}
