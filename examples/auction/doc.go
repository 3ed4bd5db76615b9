// Package auction is an auction whose lots and bidders are spaces of their own: bids that extend the end, a credit that is reserved over
// spaces, a board of all lots, and payments outside. README.md shows how to run it; auction.star is the same in Starlark.
package auction
