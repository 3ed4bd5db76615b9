package dev

import (
	"net"
	"net/url"
	"strconv"

	"github.com/settlehq/settle/bus"
)

// contextFor returns the nats context to write for a server: ContextName, or that name with the
// port appended while it belongs to another running server.
func contextFor(nats string) string {
	other := bus.ContextURL(ContextName)
	u, err := url.Parse(other)
	if other == "" || other == nats || err != nil || free(net.JoinHostPort(u.Hostname(), u.Port())) {
		return ContextName
	}
	return ContextName + "-" + strconv.Itoa(portIn(nats))
}
