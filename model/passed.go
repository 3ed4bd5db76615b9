package model

// PassedOver describes the messages of a stream that a process has passed over because they cannot be read: no announcement of a member, no
// rule and no event. Nothing depends on them, and everything else goes on.
type PassedOver struct {
	Stream string `json:"stream"`
	// Seq, Subject and Reason are those of the last one, and Count is the number of all.
	Seq     uint64 `json:"seq"`
	Subject string `json:"subject"`
	Reason  string `json:"reason"`
	Count   uint64 `json:"count"`
}
