// Package test holds what no single package can show: whole deployments on an
// embedded NATS server, several runtimes on one space, crashes between any two
// steps. Each test is named after the promise that it keeps.
package test
