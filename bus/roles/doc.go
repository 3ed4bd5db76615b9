// Package roles lists what the users of a deployment publish and subscribe to: worker, coordinator, client,
// reader, backup and operator.
package roles
