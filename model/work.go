package model

// Answer is a message of a performer about work that was offered to it.
type Answer struct {
	Data []byte
	// Nobody reports that no performer is there, in place of a message.
	Nobody bool
	// Reply, if not nil, tells the performer what became of the message, which asks for that.
	Reply func([]byte)
}
