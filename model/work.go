package model

// Answer is a message of a performer about work that was offered to it.
type Answer struct {
	Data []byte
	// NoPerformer reports that no performer is there, in place of a message.
	NoPerformer bool
	// Reply, if not nil, sends a reply to the performer, which has asked for one.
	Reply func([]byte)
	// Last, if not nil, is Reply for the last answer of an offer: the same answer, sent again when the offer is over, gets the
	// same reply.
	Last func([]byte)
}
