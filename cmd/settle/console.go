package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/console"
	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/model"
)

// consoleCmd is `settle console`.
type consoleCmd struct {
	inName
	HTTP       string   `name:"http" help:"The address to listen on. One that other machines reach needs a token or principals." default:"127.0.0.1:7333" placeholder:"ADDR"`
	TokenFile  string   `name:"http-token-file" help:"File with a token, which may see everything and change nothing." type:"existingfile" placeholder:"FILE"`
	Principals string   `name:"http-principals" help:"File (JSON) with principals, their tokens and rights." type:"existingfile" placeholder:"FILE"`
	Host       []string `name:"http-host" help:"Host name under which browsers may address the console. Repeatable." placeholder:"NAME"`
	TLSCert    string   `name:"http-tls-cert" help:"File with the certificate (PEM) for HTTPS." type:"existingfile" placeholder:"FILE"`
	TLSKey     string   `name:"http-tls-key" help:"File with the key of that certificate." type:"existingfile" placeholder:"FILE"`
}

// Help returns the long help.
func (consoleCmd) Help() string {
	return "The console is a page that shows what happens in the deployment and why, and can act on it with the rights of the NATS user of this command. Actions are in the audit trail (settle audit). " +
		"On a loopback address, all programs of this machine may use it. See docs/console.md."
}

// Run serves the console until it is interrupted.
func (c *consoleCmd) Run(ctx context.Context, io streams) error {
	return c.use(ctx, io, need{}, func(b *bus.Bus, _ *settle.Client) error {
		log, flush, err := logOf(ctx, io, "settle-console")
		if err != nil {
			return usage(err)
		}
		defer flush()
		pages, err := console.OnBus(b, console.Config{Version: version, Principal: asker(c.Principal), SendAs: c.Principal, Remember: true, Logger: log})
		if err != nil {
			return err
		}
		defer pages.Close()
		web := gateway.Config{
			Addr: c.HTTP, Principals: c.Principals, Hosts: c.Host, TLSCert: c.TLSCert, TLSKey: c.TLSKey, Pages: pages, Operator: c.Principal == model.Operator, Logger: log,
		}
		if c.TokenFile != "" {
			text, err := os.ReadFile(c.TokenFile)
			if err != nil {
				return err
			}
			if web.Token = strings.TrimSpace(string(text)); web.Token == "" {
				return fmt.Errorf("the token file %s is empty", c.TokenFile)
			}
		}
		g, err := gateway.Listen(web)
		if op, is := errors.AsType[*net.OpError](err); is && op.Op == "listen" {
			return fmt.Errorf("%w; choose another address (--http). If settle dev runs in this directory, its console is at its HTTP address", err)
		}
		if err != nil {
			return err
		}
		scheme := "http"
		if c.TLSCert != "" {
			scheme = "https"
		}
		fmt.Fprintf(io.out, "console of deployment %s at %s://%s; Ctrl-C ends it\n", b.Prefix(), scheme, g.Addr())
		g.Serve(ctx, nil, nil, nil)
		return nil
	})
}

// asker returns in whose name the console asks workers.
func asker(principal string) string {
	if principal == model.Operator {
		return principal
	}
	return ""
}
