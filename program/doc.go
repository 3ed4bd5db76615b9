// Package program keeps hosted programs: which versions of them there are, which space runs
// which, and what that comes to in a process. Package program/star is the language that they
// are written in; the core runs them as it runs those that are written in Go.
//
// # What is stored
//
// All of it lies in one KV bucket, SETTLE_PROGRAMS, as JSON that any NATS client can read:
//
//	version.<program>.<version>   the files of a version, by whom and when; never changed
//	rule.all                      what the spaces run that no other rule is about
//	rule.prefix.<prefix>          ... those whose names begin so
//	rule.space.<space>            ... this one
//
// A version's name is a hash of its files, so what was deployed twice is one version, and a
// name never stands for two texts. It is created on the condition that nothing is there.
//
// A rule names a program and a version. The most particular one decides for a space: its own
// before the longest prefix before that for all. A rule may try a second version, its canary,
// in so many percent of its spaces; which ones follows from their names alone, so every
// worker agrees, and a larger share includes a smaller one. What a rule has said before stays
// in it: rolling back is saying it again. A rule is replaced on the condition that nobody has
// replaced it meanwhile, so two people who deploy at once do not undo each other unseen.
//
// # In a process
//
// A Registry follows the rules. What it has not seen it fetches and compiles, once; then it
// shows all the answers that follow from it at once. So a space is told one pointer for as long as it is to run
// one version, and whoever hosts it compares pointers (see worker.Worker.Refresh).
//
//	a rule arrives --> fetch and compile what it names --> new answers --> Config.OnChange
//
// A version that cannot be compiled here, because this executable is older than the language
// that it is written in, or that cannot be fetched yet, is passed over in favour of the last
// one of the rule that can: that is what a worker was running when the rule arrived, and what
// it comes back to after a restart. It is said in the log, as an error, and by Troubles.
//
// # What this does not promise
//
// Workers hear of a rule one after the other, within moments as a rule; one that is cut off
// from the server goes on with what it knows, and so do its spaces, until it is back or
// others take them over. Several versions run at once meanwhile, in different spaces. Never
// two in one: a space has one owner at a time, and what another would append is refused.
package program
