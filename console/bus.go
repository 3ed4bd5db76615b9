package console

import (
	"context"
	"time"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/survey"
	"github.com/settlehq/settle/internal/doctor"
	"github.com/settlehq/settle/internal/fleet"
)

// backupAge is how old the newest backup may be, as for settle doctor.
const backupAge = doctor.BackupAge

// OnBus returns a console on a connection. It sets Config.Bus, Config.User and, unless it is set, Config.Examine.
func OnBus(b *bus.Bus, cfg Config) (*Console, error) {
	cfg.Bus = b
	cfg.User = func(ctx context.Context) (user, account string) {
		u, err := b.Streams().AskUser(ctx)
		if err != nil {
			return "", ""
		}
		return u.User, u.Account
	}
	if cfg.Examine == nil {
		cfg.Examine = func(ctx context.Context) (*doctor.Report, error) { return examine(ctx, b) }
	}
	return New(cfg)
}

// examine examines the deployment with a connection of its own, which changes nothing.
func examine(ctx context.Context, b *bus.Bus) (*doctor.Report, error) {
	cfg := b.Config()
	cfg.Name, cfg.AckTimeout = "doctor/console", 3*time.Second
	s, err := survey.New(ctx, cfg, survey.Config{})
	if err != nil {
		return nil, err
	}
	if s.JetStream != nil || s.NoDeployment || s.Partitions == 0 {
		return doctor.Judge(s, nil, nil, backupAge), nil
	}
	f, err := fleet.Look(ctx, b)
	return doctor.Judge(s, f, err, backupAge), ctx.Err()
}
