package runs

import (
	"fmt"

	"github.com/settlehq/settle/model"
)

// FailedIn describes the runs of a space that have failed, at most so many, in the order of their ids: for tests, in which another expectation has failed.
func FailedIn(space string, value func(doc string) model.Value, most int) (lines []string) {
	for id, entry := range value(Index).All() {
		if state, _ := entry.Get("state").AsString(); State(state) != Failed {
			continue
		}
		if len(lines) == most {
			return append(lines, "and more")
		}
		why := value(Doc(id)).Get("error")
		kind, _ := why.Get("type").AsString()
		message, _ := why.Get("message").AsString()
		lines = append(lines, fmt.Sprintf("space %s: run %s has failed: %s: %s", space, id, kind, message))
	}
	return lines
}
