package model

import "strings"

// maxIdempotencyKey is the length of the longest idempotency key: services accept as many characters.
const maxIdempotencyKey = 64

// IdempotencyKey returns the key under which a task is performed at a service outside: unique over the actions, the spaces and the
// deployments that use the service, and the same for each attempt and each start of the task. It has at most 64 letters, digits, '-', '_' and '.'. The mapping must not change:
// what was performed under another key would be performed again.
func IdempotencyKey(deployment, space, action, key string) string {
	parts := []string{deployment, space, action, NameOf(key)}
	if text := strings.Join(parts, "."); len(text) <= maxIdempotencyKey {
		return text
	}
	parts[3] = key // the names before it contain no '.'
	return hashName(strings.Join(parts, "."))
}
