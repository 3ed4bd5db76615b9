package flow

import (
	"encoding/json"
	"fmt"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/workflow"
)

// toGo converts a value of a run to a Go value, by the rules of encoding/json.
func toGo[T any](v starlark.Value) (x T, err error) {
	data, err := workflow.ToJSON(v)
	if err != nil {
		return x, err
	}
	if err := json.Unmarshal(data, &x); err != nil {
		return x, fmt.Errorf("a value of the run: %w", err)
	}
	return x, nil
}

// fromGo is the inverse of toGo. What payloads of events are made of decides, as everywhere in Settle: a nil slice is an empty list.
func fromGo(x any) (starlark.Value, error) {
	v, err := model.Of(x)
	if err != nil {
		return nil, err
	}
	return workflow.FromJSON(v.AppendJSON(nil))
}
