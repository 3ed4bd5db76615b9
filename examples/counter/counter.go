// Package counter is the smallest program: a space with one number.
package counter

import "github.com/settlehq/settle"

// Program counts: an event to the stream "add" adds its payload's "by" (1 if there
// is none) to the document "count", and its receipt has the new value. The
// document "double" is derived, while it is watched.
func Program() *settle.Program {
	return settle.NewProgram("counter").
		Handle("add", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
			by, ok := ev.Payload.Get("by").AsInt()
			if !ok {
				by = 1
			}
			n, _ := tx.Get("count").AsInt()
			tx.Set("count", n+by)
			return tx.Get("count"), nil
		}).
		Compute("double", func(v *settle.View) (settle.Value, error) {
			n, _ := v.Get("count").AsInt()
			return settle.ValueOf(2 * n)
		})
}
