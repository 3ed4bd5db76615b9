// Package roles lists what the users of a deployment publish and subscribe to: worker, coordinator, client,
// reader, backup, operator and performer.
package roles
