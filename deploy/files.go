// Package deploy has the files with which a fleet is run: configurations of servers, and a composition of containers.
package deploy

import "embed"

// Files are the directories compose and nats.
//
//go:embed compose nats
var Files embed.FS
