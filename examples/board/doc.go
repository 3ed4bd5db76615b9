// Package board is a board of cards: a keyed list of a thousand of them, in columns, each with a
// link to its owner, in that person's own space. README.md describes it.
//
//	space board   cards .....> tiles ......> columns
//	                            ^  (one node  ^  (one node per column)
//	              order ........:. per card) .'
//	                            :
//	space ann     self ...> badge
package board
