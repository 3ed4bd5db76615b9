package flow

import (
	"encoding/json"
	"fmt"

	"go.starlark.net/starlark"

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

// fromGo is the inverse of toGo.
func fromGo(x any) (starlark.Value, error) {
	data, err := json.Marshal(x)
	if err != nil {
		return nil, err
	}
	return workflow.FromJSON(data)
}
