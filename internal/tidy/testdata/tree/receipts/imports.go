// Package receipts imports sideways and upwards.
package receipts

import (
	_ "github.com/settlehq/settle/model"
	_ "github.com/settlehq/settle/replica" // want "side by side on model"
	_ "github.com/settlehq/settle/space"   // want "side by side on model"
)
