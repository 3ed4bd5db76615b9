package main

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/settlehq/settle/bus/embedded"
)

// servers has the URL of the server that each test points at, by the name of the test. It takes the place
// of NATS_URL, which is one for all tests of a process.
var servers sync.Map

// pointAt makes the commands of a test and of its subtests use that server, unless --nats or --store names
// another one. With "", they find one themselves.
func pointAt(t *testing.T, url string) {
	name := t.Name()
	servers.Store(name, url)
	t.Cleanup(func() { servers.Delete(name) })
}

// ownServer starts a server for the test, whose commands use it, and returns its URL.
func ownServer(t *testing.T, store string) string {
	t.Helper()
	server, err := embedded.Start(t.Context(), embedded.Config{StoreDir: store, Fsync: embedded.FsyncInterval, Listen: ":0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Shutdown)
	pointAt(t, server.ClientURL())
	return server.ClientURL()
}

// urlOf returns the URL of the server that the test points at, "" for none.
func urlOf(t *testing.T) string {
	for name := t.Name(); name != ""; name = name[:max(strings.LastIndexByte(name, '/'), 0)] {
		if url, is := servers.Load(name); is {
			return url.(string)
		}
	}
	return ""
}

// deploymentOf gives --nats the server that the test points at.
func deploymentOf(t *testing.T) kong.Option {
	url := urlOf(t)
	return kong.Resolvers(kong.ResolverFunc(func(c *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		if flag.Name != "nats" || url == "" || slices.Contains(c.Args, "--store") {
			return nil, nil
		}
		return url, nil
	}))
}
