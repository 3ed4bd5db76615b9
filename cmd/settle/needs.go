package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/settlehq/settle/bus/provision"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/model"
)

// need lists the streams of a deployment that a command requires. The zero need belongs to commands that show what
// they can, such as `settle fleet`.
type need struct {
	spaces []string // those of the partitions of these spaces
	shared []string // those that the partitions share, by component
	every  bool     // those of every partition
	whole  bool     // every one
	// none reports that a user that may not read the streams can use the command: it sends, or asks workers.
	none bool
	// patience is the time limit for needed streams that do not answer, as while they elect a
	// leader; defaultPatience if it is 0.
	patience time.Duration
}

// defaultPatience is longer than the election of a leader.
const defaultPatience = 30 * time.Second

// patient returns the need with another time limit.
func (n need) patient(d time.Duration) need {
	n.patience = d
	return n
}

// ofSpaces returns the need of a command about some spaces; a name may be empty.
func ofSpaces(names ...string) need {
	return need{spaces: slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "" })}
}

// check returns an error if a needed stream has a defect, with the remedy.
func (n *need) check(defects []provision.Defect, partitions int) error {
	var errs []error
	for i := range defects {
		d := &defects[i]
		at := slices.IndexFunc(n.spaces, func(space string) bool { return model.PartitionOf(space, partitions) == d.Partition })
		switch {
		case at >= 0:
			errs = append(errs, fmt.Errorf("space %s is in partition %d, which cannot be used now: %w", n.spaces[at], d.Partition, d.Err))
		case n.whole, n.every && d.Partition != provision.AllPartitions, slices.Contains(n.shared, d.Component):
			errs = append(errs, d.Err)
		}
	}
	return errors.Join(errs...)
}

// met returns the defects of a deployment, and an error if a needed stream has one. It
// waits for needed streams that do not answer, within the command's patience.
func (n *need) met(ctx context.Context, look func(context.Context) ([]provision.Defect, error), partitions int) ([]provision.Defect, error) {
	within, end := context.WithTimeout(ctx, cmp.Or(n.patience, defaultPatience))
	defer end()
	for {
		defects, err := look(ctx)
		if err != nil {
			return nil, err
		}
		lasting := slices.DeleteFunc(slices.Clone(defects), func(d provision.Defect) bool { return d.Silent() })
		err = n.check(defects, partitions)
		if err == nil || n.check(lasting, partitions) != nil || within.Err() != nil {
			return defects, err
		}
	}
}

// maxDefects is the largest number of defective streams that are named by a command that does not need them.
const maxDefects = 5

// printDefects prints the defective streams, and which parts of the deployment can be used nevertheless.
func printDefects(w io.Writer, defects []provision.Defect) {
	for i := range defects[:min(len(defects), maxDefects)] {
		d := &defects[i]
		if d.Partition == provision.AllPartitions {
			fmt.Fprintf(w, "not all of the deployment can be used: %v\n", d.Err)
			continue
		}
		fmt.Fprintf(w, "partition %d cannot be used now, others can: %v\n", d.Partition, d.Err)
	}
	if more := len(defects) - maxDefects; more > 0 {
		fmt.Fprintf(w, "%s more cannot be used: `settle doctor` names them\n", display.Count(more, "stream"))
	}
}
