package model

import "github.com/go-json-experiment/json"

// DerivedDocument returns the document that a node derives, given the saved observation of the node (an item
// of SpaceState.Observations). It returns false if the node derives no document of its own name, or if the
// item cannot be decoded. Package space defines the rest of the item.
func DerivedDocument(item *StateDoc) (doc string, ok bool) {
	var o struct {
		Node  string `json:"n"`
		Shape uint64 `json:"o"`
	}
	if json.Unmarshal(item.Data, &o) != nil || o.Shape != 0 || o.Node == "" {
		return "", false
	}
	return o.Node, true
}
