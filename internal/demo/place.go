package demo

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
)

// place is where a run keeps its streams.
type place struct {
	url    string // of an outside server; "" for the embedded one
	dir    string // of the embedded one
	prefix string // of the subjects
	keep   bool
}

// choosePlace returns the place, and creates a temporary directory if none was given.
//
// On an outside server every run has a prefix of its own, so that runs never mix. In a directory
// the prefix follows from the input: a run on the same input continues the last one, and a run on
// another input starts anew.
func choosePlace(o *Options) (place, error) {
	if o.NATS != "" {
		return place{url: o.NATS, prefix: "demo-" + strings.ToLower(rand.Text()[:6]), keep: o.Keep}, nil
	}
	h := sha256.New()
	for i := range o.Flights {
		_, _ = fmt.Fprintf(h, "%+v\n", o.Flights[i]) // a hash never fails
	}
	p := place{dir: o.Store, keep: o.Store != "", prefix: fmt.Sprintf("flights-%x", h.Sum(nil)[:4])}
	if p.keep {
		return p, nil
	}
	var err error
	if p.dir, err = os.MkdirTemp("", "settle-demo-"); err != nil {
		return p, fmt.Errorf("make a temporary directory for the server: %w; name one with --store", err)
	}
	return p, nil
}

func (p *place) server(fsync embedded.Fsync) embedded.Config {
	return embedded.Config{StoreDir: p.dir, Fsync: fsync}
}

func (p *place) bus(partitions int) bus.Config {
	return bus.Config{URL: p.url, Prefix: p.prefix, Partitions: partitions}
}

// leavesStreams reports whether an interrupted run would leave streams on an outside server.
func (p *place) leavesStreams() bool { return p.url != "" && !p.keep }

// remove deletes a temporary directory.
func (p *place) remove() error {
	if p.url != "" || p.keep {
		return nil
	}
	return os.RemoveAll(p.dir)
}

// describe describes the server and the durability of its acknowledgements.
func (p *place) describe(fsync embedded.Fsync) string {
	if p.url != "" {
		host := "the given URL"
		if u, err := url.Parse(p.url); err == nil && u.Host != "" {
			host = u.Host // without a password
		}
		return fmt.Sprintf("NATS at %s, streams %s_*", host, strings.ToUpper(p.prefix))
	}
	if fsync == embedded.FsyncInterval {
		return "embedded NATS, fsync interval"
	}
	return "embedded NATS, fsync always"
}
