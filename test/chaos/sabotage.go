//go:build unix

package main

import (
	"encoding/json"
	"strings"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/test/chaos/history"
)

// sabotage passes the log to the checker. To test the checker, --lie passes a log
// that differs from that of the run.
func (o *options) sabotage(c *history.Checker) func(partition int, e model.LogEntry) {
	n := 0
	var held *model.LogEntry
	return func(p int, e model.LogEntry) {
		if p != 0 || o.Lie == "" || !strings.Contains(string(e.Data), `"rc"`) {
			c.Log(p, e)
			return
		}
		n++
		switch {
		case o.Lie == "lost" && n == 50:
		case o.Lie == "twice" && n == 50:
			c.Log(p, e)
			e.Seq++ // it would be skipped otherwise
			c.Log(p, e)
		case o.Lie == "order" && n == 50:
			held = &e
		case held != nil && held.Space == e.Space:
			first := *held
			held = nil
			c.Log(p, e)
			c.Log(p, first)
		case o.Lie == "value" && n == 50:
			e.Data = tamper(e.Data)
			c.Log(p, e)
		default:
			c.Log(p, e)
		}
	}
}

// tamper changes the result of the first handler of a commit.
func tamper(data []byte) []byte {
	var c map[string]any
	if err := json.Unmarshal(data, &c); err != nil {
		return data
	}
	for _, tx := range c["tx"].([]any) {
		if rc, ok := tx.(map[string]any)["rc"].(map[string]any); ok {
			rc["r"] = map[string]any{"n": 7, "h": 7}
			break
		}
	}
	out, err := json.Marshal(c)
	if err != nil {
		return data
	}
	return out
}
