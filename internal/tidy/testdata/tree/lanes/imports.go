// Package lanes imports sideways and upwards.
package lanes

import (
	_ "github.com/settlehq/settle/lineage" // want "side by side on model"
	_ "github.com/settlehq/settle/model"
	_ "github.com/settlehq/settle/space" // want "side by side on model"
)
