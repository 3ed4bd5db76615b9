package model

import "fmt"

// InternalStream is the code of the rejection of an event that a client has sent on an internal stream, and InternalStreamError the error of a
// client, or of a worker's gateway, that refuses to store one.
const InternalStream = "internal-stream"

// InternalStreamError reports that an event was not stored, because only spaces may send on its stream.
type InternalStreamError struct{ Space, Stream string }

func (e *InternalStreamError) Error() string {
	return fmt.Sprintf("stream %s of space %s is internal: only handlers and timers of the deployment's spaces send on it; nothing was stored", e.Stream, e.Space)
}
