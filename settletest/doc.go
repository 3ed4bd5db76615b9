// Package settletest tests spaces: in memory, in virtual time, without a server.
//
// A World holds the spaces of a program, or of several. A test sends them events, advances the
// time, and states what it expects:
//
//	func TestPunctuality(t *testing.T) {
//		t.Parallel()
//		w := settletest.New(t, airport())
//		ham := w.Space("HAM")
//		settletest.Call(ham, departure, Departure{Flight: "LH1"})
//		settletest.Expect(ham, punctuality, Punctuality{Percent: 100})
//		w.Advance(2 * time.Hour)
//	}
//
// A call returns when everything it caused is done: the handler, the events that it sent to other
// spaces, and the observed documents that are derived from their writes. Time stands still in
// between and moves only with Advance, which runs each timer, cron job, delayed event, debounced
// node and retry at its time. A month takes a millisecond, with the same order in every run. Worlds
// share nothing, so tests can run in parallel.
//
// # Reading and writing
//
// A Space is a settle.Reader and a settle.Writer, like a transaction: stats.Get(s) reads a cell,
// punctuality.Get(s) a derived document, which is computed for the read, and stats.Set(s,
// Stats{...}) writes the initial state of a test. Get is a client's single read; Watch is a
// client's watch and collects what it receives. Rows are expected and watched as a map.
//
// # What fails a test by itself
//
//	an error or panic of a computation or effect          AllowErrors
//	an event sent by the program that fails or is refused  AllowErrors
//	a function that is not idempotent: run again over the
//	  same documents, its result differs                   WithoutValidator
//	a write of a node outside its declared locations       AllowOutsideWrites
//	nodes that invalidate each other in a circle           AllowCircles
//	events sent to a space that has no program             AllowUndelivered
//	a function that blocks: sleeps, waits for a channel,
//	  a lock, the network                                  AllowBlocking
//
// The option on the right allows it. A call that cannot end (a function that blocks, a handler that
// sends itself events forever) ends the test at once.
//
// # Why
//
// Runs and Ran report what has run since Mark, ExpectRuns compares, and Why explains in sentences
// why a node ran or did not. Failures include that explanation: what is waiting, what is held back,
// and which problems came before.
package settletest
