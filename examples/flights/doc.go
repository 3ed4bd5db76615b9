// Package flights is Settle on real data: 20,000 domestic flights of the United
// States in the first quarter of 2001, between 224 airports.
//
// Every airport is a space. A flight is an event "departure" to its origin, whose
// handler updates the origin's statistics and sends an "arrival" to the
// destination, which is another space and may live on another worker. Each airport
// derives its punctuality, but only while it is watched; the space "nation" ranks
// some airports by reading their punctuality across spaces, which observes it.
//
//	departure f00001 -> DTW: stats ......> punctuality ..\  (only if
//	                     | arrival                        >  nation: ranking
//	                     v                               /   is watched)
//	                    LAS: stats ......> punctuality ./
//
// The package holds the program (program.go), the input and its checks (input.go),
// and the same statistics by one plain pass over the input (plain.go), against
// which a run is verified. Package audit does that, with nothing but a NATS client;
// "settle demo flights" runs it all. README.md describes it step by step.
package flights
