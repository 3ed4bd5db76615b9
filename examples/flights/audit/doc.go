// Package audit verifies a run of the flights with nothing but a NATS client. It
// reads the LOG streams and the STATE buckets, as any program in any language can
// (read.go knows five facts about their format), and compares them with
// one plain pass over the input.
//
// What it proves, if it finds no difference:
//
//   - every departure and every arrival has exactly one receipt: nothing is lost,
//     nothing took effect twice;
//   - every airport handled its departures in the order of the input, and the
//     arrivals from one origin in the order in which that airport sent them;
//   - the documents of every airport are the sums of the input, both in the bucket
//     and in the log;
//   - watched documents follow from them, and nothing was computed for an
//     airport without a watch.
package audit
