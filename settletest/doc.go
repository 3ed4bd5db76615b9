// Package settletest tests spaces: in memory, in virtual time, without a server.
//
// A World holds the spaces of a program, or of several. A test sends them events, lets time
// pass, and says what it expects:
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
// Everything is done when a call returns: the handler, what it has sent to other spaces, what
// is derived from what they have written and somebody needs. Time stands still meanwhile, and
// moves only with Advance: on the way each timer, cron job, delayed event, debounced node and
// retry has its turn, at its time. So a month passes in a millisecond, in the same order every
// time. Worlds share nothing; tests may all be parallel.
//
// # Reading and writing
//
// A Space is a settle.Reader and a settle.Writer, as a transaction is: stats.Get(s) reads a cell,
// punctuality.Get(s) a derived document, which is computed because it is asked for, and
// stats.Set(s, Stats{...}) writes what a test begins with. Get reads as a client would that asks
// once; Watch is a client that watches, and collects what it sees. Rows are expected and watched
// as a map.
//
// # What fails a test by itself
//
//	an error or panic of a computation or effect          AllowErrors
//	an event of the program's own that fails or is refused,
//	  with nobody to see its receipt                       AllowErrors
//	a function that is not idempotent: run again over the
//	  same documents, it comes to something else           WithoutValidator
//	a write of a node to where it has not declared it      AllowOutsideWrites
//	nodes that go round in a circle                        AllowCircles
//	a function that blocks: sleeps, waits for a channel,
//	  a lock, the network                                  AllowBlocking
//
// The option beside it allows it. A call that cannot come to an end (a function that blocks, a
// handler that sends itself events for ever) ends the test at once.
//
// # Why
//
// Runs and Ran count what has run since Mark, ExpectRuns compares, and Why tells in sentences
// why a node ran, or why it did not. Failures tell it too: what waits, what is held back, and
// what went wrong before.
package settletest
