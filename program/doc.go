// Package program stores hosted programs: the versions of each, the rules that assign them to
// spaces, and in a process the compiled program of each space. Package program/star is the language
// in which they are written; the core runs them like programs written in Go.
//
// # What is stored
//
// Everything is in one KV bucket, SETTLE_PROGRAMS, as JSON that any NATS client can read:
//
//	version.<program>.<version>   the files of a version, its author and time of deployment; immutable
//	rule.all                      what spaces without a more specific rule run
//	rule.prefix.<prefix>          ... spaces whose names have the prefix
//	rule.space.<space>            ... one space
//
// The id of a version is a hash of its files, so deploying the same files twice yields one version,
// and an id never stands for two texts. It is stored on the condition that the key is absent.
//
// A rule names a program and a version. The most specific rule decides for a space: its own, then
// the longest prefix, then the rule for all. A rule can try a second version, its canary, in a
// percentage of its spaces; which ones follows from their names alone, so all workers agree, and a
// larger percentage includes the spaces of a smaller one. A rule keeps its previous choices;
// rolling back is choosing one of them again. A rule is replaced by compare-and-set, so concurrent
// deployments do not overwrite each other unnoticed.
//
// # In a process
//
// A Registry follows the rules. It fetches and compiles versions that it has not seen, once, and
// then publishes all resulting answers together. A space gets the same pointer while it is to run
// the same version, so the worker compares pointers (see worker.Worker.Refresh).
//
//	a rule arrives --> fetch and compile its versions --> new answers --> Config.OnChange
//
// A version that cannot be compiled here, because this executable is older than the language in
// which it is written, or that cannot be fetched yet, is skipped in favour of the latest choice of
// the rule that can: the version that a worker was running when the rule arrived, and that it
// returns to after a restart. The skipped version is logged as an error, and returned by Problems.
//
// # What this does not promise
//
// Workers receive a rule one after the other, usually within moments. A worker that is cut off from the
// server keeps running what it has, with its spaces, until it is back or other workers take them over.
// Until then several versions run at once, in different spaces, but never two in one: a space has one
// owner at a time, and appends of another are refused.
package program
