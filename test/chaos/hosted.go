//go:build unix

package main

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/program"
	"github.com/settlehq/settle/test/chaos/history"
)

// hostedText is the program of the hosted spaces, without its version and the number of spaces.
//
//go:embed hosted.star
var hostedText string

// hostedName is the name of that program.
const hostedName = "chaos"

// hostedSource returns one version of it; all versions behave the same.
func hostedSource(w history.Workload, version int) program.Source {
	text := strings.NewReplacer(
		"HOSTED_VERSION = 0", fmt.Sprint("HOSTED_VERSION = ", version),
		"SPACES = 0", fmt.Sprint("SPACES = ", w.Spaces),
	).Replace(hostedText)
	return program.Source{Name: hostedName, Entry: hostedName + program.Extension, Files: map[string]string{hostedName + program.Extension: text}}
}

// deploy deploys a version to the hosted spaces.
func deploy(ctx context.Context, b *bus.Bus, w history.Workload, version int) error {
	v, err := program.NewVersion(hostedSource(w, version), "chaos", "", time.Now())
	if err != nil {
		return err
	}
	stored, _, err := program.Publish(ctx, b, v)
	if err != nil {
		return fmt.Errorf("publish version %d: %w", version, err)
	}
	for i := range w.Spaces {
		if !w.IsHosted(i) {
			continue
		}
		_, err := program.Decide(ctx, b, w.Space(i), func(program.Rule) (program.Choice, error) {
			return program.Choice{Target: stored.Target(), By: "chaos", At: stored.At}, nil
		})
		if err != nil {
			return fmt.Errorf("have %s run version %d: %w", w.Space(i), version, err)
		}
	}
	return nil
}
