package dev

import (
	"net"
	"net/url"
	"strconv"

	"github.com/settlehq/settle/bus"
)

// contextFor is the nats context to write for a server: ContextName, or one with the port behind
// it while that is another server's which still runs.
func contextFor(nats string) string {
	other := bus.ContextURL(ContextName)
	u, err := url.Parse(other)
	if other == "" || other == nats || err != nil || free(net.JoinHostPort(u.Hostname(), u.Port())) {
		return ContextName
	}
	return ContextName + "-" + strconv.Itoa(portIn(nats))
}
