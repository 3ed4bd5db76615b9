package runs

import (
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/workflow"
)

// The document of a run whose code calls functions of its process has what it waits for, apart from actions and children: a client, which cannot make such a
// run again, can then say that an approval is due. What is written is little, and only when such a wait begins or ends.

// Bounds of what is noted.
const (
	// notedFrames is the largest number of calls of functions that are under way in a run of which waits are noted, and notedWaits that of the waits.
	notedFrames = 64
	notedWaits  = 20
	// notedText bounds the text of a condition, in bytes.
	notedText = 200
)

// inWaits is the member of a run's document.
const inWaits = "waits"

// noted is a wait in the document of a run.
type noted struct {
	ID     string `json:"id"`
	Func   int    `json:"fn,omitzero"`
	Node   int    `json:"node"`
	Signal string `json:"signal,omitzero"`
	Until  string `json:"until,omitzero"`
	Since  int64  `json:"since,omitzero"`
	// At is the end of a sleep, or of the timeout of a wait.
	At int64 `json:"at,omitzero"`
}

// writeWaits notes what a run waits for, if clients cannot know it otherwise.
func (h *host) writeWaits(id string, e *entry) {
	doc := h.tx.Peek(Doc(id))
	name, _ := doc.Get("workflow").AsString()
	if d := h.set.byName[name]; d == nil || !d.native {
		return
	}
	var list []noted
	if e.last.plan.outcome == nil {
		waits, _ := e.d.run.Waits(notedFrames)
		for i := range waits[:min(len(waits), notedWaits)] {
			w := &waits[i]
			list = append(list, noted{w.ID, w.Func, w.Node, w.Signal, cutTo(w.Until, notedText), w.Since, e.d.timers[w.ID]})
		}
	}
	was := doc.Get(inWaits)
	if len(list) == 0 {
		if !was.IsAbsent() {
			h.tx.Delete(Doc(id), inWaits)
		}
		return
	}
	text, err := json.Marshal(list)
	if err != nil {
		h.tx.Fail(err)
		return
	}
	v, err := model.ParseValue(text)
	if err != nil {
		h.tx.Fail(err)
		return
	}
	if !model.Equal(v, was) {
		h.tx.Set(Doc(id), v, inWaits)
	}
}

// cutTo returns at most the first bytes of a text.
func cutTo(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// readWaits returns the waits that the document of a run has, and their times.
func readWaits(doc model.Value) (open []workflow.Open, timers map[string]int64) {
	v := doc.Get(inWaits)
	if v.IsAbsent() {
		return nil, nil
	}
	var list []noted
	if json.Unmarshal([]byte(v.String()), &list) != nil {
		return nil, nil // another version may write it in another way
	}
	timers = map[string]int64{}
	for _, w := range list {
		open = append(open, workflow.Open{ID: w.ID, Func: w.Func, Node: w.Node, Signal: w.Signal, Until: w.Until, Since: w.Since})
		if w.At > 0 {
			timers[w.ID] = w.At
		}
	}
	return open, timers
}
