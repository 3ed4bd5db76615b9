package console

import (
	"context"

	"github.com/settlehq/settle/bus"
)

// OnBus returns a console on a connection. It sets Config.Bus and Config.User.
func OnBus(b *bus.Bus, cfg Config) (*Console, error) {
	cfg.Bus = b
	cfg.User = func(ctx context.Context) (user, account string) {
		u, err := b.Streams().AskUser(ctx)
		if err != nil {
			return "", ""
		}
		return u.User, u.Account
	}
	return New(cfg)
}
