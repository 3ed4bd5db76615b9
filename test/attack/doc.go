// Package attack is an adversary. It has the credentials of users that are not trusted, and tries with each of them every
// subject of a deployment and of JetStream, as a message, as a request whose answer would go where it does harm, and with headers that
// servers or Settle act on. For each attempt, either the server refuses it, or nothing changes in the streams but what the
// user may send.
//
// An attempt is recognised in the streams by the name of the space, stream or key that it is about, which occurs nowhere else. Other
// changes of the streams do not matter, so that workers and coordinators may run; they should: their services are attacked as
// well.
//
//	subjects.go  what is attacked: subjects, reply subjects, headers
//	attempt.go   how an attempt is made
//	evidence.go  what is compared before and after
//	run.go       the order of it all, and the report
//
// The tests of this package start servers and processes with the files of deploy/nats, and expect no breach; then they take the
// borders away one at a time, and expect a breach. `settle doctor --attack` runs the same against any deployment.
package attack
