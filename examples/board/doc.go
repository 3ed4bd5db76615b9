// Package board is a board of cards: a keyed list of a thousand of them, in columns, each with a
// link to who owns it, in that person's own space. README.md tells what it shows.
//
//	space board   cards .....> tiles ......> columns
//	                            ^  (one node  ^  (one node per column)
//	              order ........:. per card) .'
//	                            :
//	space ann     self ...> badge
package board
