// Package lineage imports sideways and upwards.
package lineage

import (
	_ "github.com/settlehq/settle/model"
	_ "github.com/settlehq/settle/receipts" // want "side by side on model"
	_ "github.com/settlehq/settle/space"    // want "side by side on model"
)
