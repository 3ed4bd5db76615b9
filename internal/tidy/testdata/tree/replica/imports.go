// Package replica imports sideways and upwards.
package replica

import (
	_ "github.com/settlehq/settle/lanes" // want "side by side on model"
	_ "github.com/settlehq/settle/model"
	_ "github.com/settlehq/settle/space" // want "side by side on model"
)
