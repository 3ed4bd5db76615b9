package host

import "github.com/settlehq/settle/port"

// Bus is everything that a worker needs from the outside world; see package port.
type Bus = port.Bus
