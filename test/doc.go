// Package test has the tests that span packages: whole deployments on an embedded NATS server and on a
// cluster of three, several runtimes on one space, crashes between any two steps. Each test is named
// after the promise that it verifies.
//
//   - path, fleet, trace: the whole path of an event, while processes start and stop.
//   - lineage, receipts: I10 and I11 between runtimes. A stage holds their commits back
//     and releases them in the order that the test needs; nothing is left to chance.
//   - race: sixteen runtimes handle the same events, in whatever order the machine schedules them.
//   - history: concurrent clients record their requests and answers, while
//     workers die and leaders change; porcupine looks for a sequential history that a lane with
//     receipts allows (model), and draws a history that has none.
package test
