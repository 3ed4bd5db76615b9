// Package model imports upwards.
package model

import (
	_ "fmt"
	_ "sync" // want "one owner"

	_ "github.com/go-json-experiment/json/jsontext"
	_ "github.com/hashicorp/go-memdb"    // want "model is the bottom"
	_ "github.com/settlehq/settle/lanes" // want "model is the bottom"
)
