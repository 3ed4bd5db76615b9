package codec

import "github.com/settlehq/settle/model"

// Kind is a kind of events (a stream, a request or a trigger of the root package) for packages that send
// events without a client, such as settletest. In and Out are the types of payload and result, struct{}
// where there is none.
type Kind[In, Out any] struct {
	// Payload returns the payload of an event; absent if In is struct{}.
	Payload func(in In) (model.Value, error)
	// Result returns the result in the receipt of an event, or an error if it was not handled.
	Result func(r *model.Receipt) (Out, error)
}
