package model

import (
	"fmt"
	"slices"
)

// Page selects some names of a sorted list. The zero Page selects all of them.
type Page struct {
	// After is the name behind which the page begins; "" for the first one. It need not exist.
	After string
	// Limit is how many names the page has at most; 0 for all.
	Limit int
	// Descending begins with the last name, and goes backwards.
	Descending bool
}

// Check returns an error unless the page is valid.
func (p Page) Check() error {
	if p.Limit < 0 {
		return fmt.Errorf("the limit of a page is %d; use a positive number, or 0 for all", p.Limit)
	}
	return nil
}

// Of returns the page of sorted names, which it does not modify.
func (p Page) Of(names []string) []string {
	at, found := slices.BinarySearch(names, p.After)
	switch {
	case p.Descending:
		if p.After != "" {
			names = names[:at]
		}
		names = slices.Clone(names)
		slices.Reverse(names)
	case found:
		names = names[at+1:]
	default:
		names = names[at:]
	}
	if p.Limit > 0 {
		names = names[:min(p.Limit, len(names))]
	}
	return names
}
