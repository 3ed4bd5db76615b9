// Package test holds what no single package can show: whole deployments on an embedded
// NATS server and on a cluster of three, several runtimes on one space, crashes between
// any two steps. Each test is named after the promise that it keeps.
//
//   - path, fleet, trace: an event's whole way, and what comes and goes meanwhile.
//   - lineage, receipts: I10 and I11 between runtimes. A stage holds their commits back
//     and lets them go in the order that the story wants; nothing is left to luck.
//   - race: sixteen runtimes at the same events, as the machine has it.
//   - history: concurrent clients write down what they ask and are answered, while
//     workers die and leaders change; porcupine looks for an order of it that a lane with
//     receipts could have had (model), and draws what it cannot explain.
package test
