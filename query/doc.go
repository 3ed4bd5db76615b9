// Package query answers SQL about the documents and receipts of many spaces.
//
// The spaces are read from the log, without a worker, into a database in memory, which SQLite then asks. The documents of a space
// are read as of one moment; its receipts, and other spaces, as of others. A derived document has the value from when it was last
// observed.
//
// A query reads, and nothing else: statements that write, attach a file or change a setting are refused. Only the tables that it names
// are filled.
package query
