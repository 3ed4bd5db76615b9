package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/internal/doctor"
	"github.com/settlehq/settle/test/attack"
)

// attack attacks the deployment as users that are not trusted, and reports what succeeded.
func (c *doctorCmd) attack(ctx context.Context, io streams) error {
	if len(c.AttackCreds) == 0 && c.AttackUser == "" {
		return usage(errors.New("--attack needs users that are not trusted: --attack-creds FILE, or --attack-user USER with the password in SETTLE_ATTACK_PASSWORD"))
	}
	admin, err := bus.Connect(ctx, c.config("client/settle"))
	if err != nil {
		return usage(err)
	}
	defer admin.Kill()
	plan := attack.Plan{Admin: admin, Log: io.err}
	for _, user := range c.attackers() {
		b, err := bus.Dial(user)
		if err != nil {
			return usage(fmt.Errorf("connect as %s%s: %w", user.User, user.Creds, err))
		}
		defer b.Kill()
		plan.Attackers = append(plan.Attackers, attack.Attacker{Name: user.User + user.Creds, Conn: b.Conn()})
	}
	report, err := attack.Run(ctx, plan)
	if err != nil {
		return usage(err)
	}
	if c.JSON {
		if err := json.NewEncoder(io.out).Encode(report); err != nil {
			return err
		}
	} else {
		for _, b := range report.Breaches {
			fmt.Fprintln(io.out, "breach:", b)
		}
		fmt.Fprintf(io.out, "%d attempts, of which the server refused %d; %d breaches\n", report.Attempts, report.Refused, len(report.Breaches))
	}
	if len(report.Breaches) > 0 {
		return exitError{int(doctor.Failure), errors.New("users that are not trusted can change this deployment")}
	}
	return nil
}

// attackers are the configurations of the connections of those users.
func (c *doctorCmd) attackers() (all []bus.Config) {
	base := c.config("client/settle")
	base.Creds, base.User, base.Password = "", "", ""
	for _, file := range c.AttackCreds {
		one := base
		one.Creds = file
		all = append(all, one)
	}
	if c.AttackUser != "" {
		one := base
		one.User, one.Password = c.AttackUser, c.AttackPassword
		all = append(all, one)
	}
	return all
}
