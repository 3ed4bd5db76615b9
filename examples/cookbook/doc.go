// Package cookbook has the programs of docs/cookbook.md, each in a file of its own, with the tests
// that the page shows.
package cookbook
