package trail

import "github.com/settlehq/settle/model"

// NoticeTo is the space that is told of how an event has ended, "" if none is: the one
// that sent it, if it was refused, cancelled or expired. Who sends from outside asks for the receipt instead.
//
// The event's id says which space that is, and can be trusted as far as the target's
// lane can: only a coordinator puts a position there.
func NoticeTo(rc *model.Receipt) string {
	origin, minted := model.OriginOf(rc.Event)
	if !rc.Outcome.CameToNothing() || rc.Pos == 0 || !minted || model.CheckName("space", origin.Space) != nil {
		return ""
	}
	return origin.Space
}
