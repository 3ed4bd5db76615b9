package model

import "strings"

const byOwner = "perform "

// EndBy returns the Tx.By of the transaction by which the owner of a space reports the end of a task of an action to the
// space (docs/adr/0057).
func EndBy(action string) string { return byOwner + action }

// EndOf returns the action whose task such a transaction reports the end of; false for any other transaction.
func EndOf(by string) (action string, is bool) { return strings.CutPrefix(by, byOwner) }
