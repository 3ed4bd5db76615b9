package fleet

import (
	"fmt"
	"testing"
	"time"

	"github.com/settlehq/settle/status"
)

// The computations that fail are those of all workers that have answered, the oldest first, with the numbers of all.
func TestFailingNodes_OfAllWorkers(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	f := &Fleet{At: now, Workers: []Member{
		{Figures: &status.Figures{FailingSpaceCount: 1, FailingNodeCount: 1, FailingNodes: []status.FailingNodes{
			{Space: "b", Count: 1, Nodes: []status.FailingNode{{Node: "light", Error: "no light\nat all"}}, Readers: []string{"far"}, ReaderCount: 1, Since: now},
		}}},
		{},
		{Figures: &status.Figures{FailingSpaceCount: 20, FailingNodeCount: 65, FailingNodes: []status.FailingNodes{
			{Space: "c", Count: 1_200, Nodes: []status.FailingNode{{Node: "row-1", Error: "x"}, {Node: "row-2", Error: "y"}}, Readers: []string{"d", "e"}, ReaderCount: 30, Since: now},
			{Space: "a", Count: 1, Nodes: []status.FailingNode{{Node: "sum", Error: "z"}}, Since: now.Add(-time.Minute)},
		}}},
	}}
	list, spaces, nodes := f.FailingNodes()
	text := ""
	for i := range list {
		text += list[i].Space + ": " + FailingNodesText(&list[i]) + "; "
	}
	const want = "a: a computation fails: sum: z; b: a computation fails, and space far reads what follows: light: no light; " +
		"c: 1200 computations fail, and 30 spaces read what follows: row-1: x; 66 nodes of 21 spaces"
	if got := text + fmt.Sprintf("%d nodes of %d spaces", nodes, spaces); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
