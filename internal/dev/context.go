package dev

import (
	"errors"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"syscall"
	"time"

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

// contextDescription describes the nats contexts of dev servers.
const contextDescription = "settle dev"

// contextNames are the names of the nats contexts of dev servers.
var contextNames = regexp.MustCompile("^" + ContextName + "(-[0-9]+)?$")

// dialPatience is how long a server on this machine may take to accept a connection.
const dialPatience = time.Second

// removeStaleContexts removes the nats contexts of dev servers that were killed: nothing listens at the loopback address that one of
// them names, or it is that of this server, which has another context.
func removeStaleContexts(nats, own string) {
	bus.RemoveContexts(contextDescription, func(name, server string) bool {
		u, err := url.Parse(server)
		if err != nil || !contextNames.MatchString(name) || u.Hostname() != "127.0.0.1" || u.Port() == "" {
			return false
		}
		return server == nats && name != own || refuses(u.Host)
	})
}

// refuses reports whether nothing listens at an address. It does not try to listen there: a server that starts may want to.
func refuses(address string) bool {
	c, err := net.DialTimeout("tcp", address, dialPatience)
	if err == nil {
		_ = c.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}
