package fleet

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Hanging describes the partitions of a worker that does not answer.
type Hanging struct {
	Worker string
	// Taken are those that other workers serve now, and By are these workers. Left are those that no answering worker
	// serves yet.
	Taken, Left []int
	By          []string
}

// Hanging returns the workers that do not answer.
func (f *Fleet) Hanging() (all []Hanging) {
	for i := range f.Workers {
		m := &f.Workers[i]
		if m.State != Silent {
			continue
		}
		h := Hanging{Worker: m.ID}
		for _, p := range f.Partitions {
			switch {
			case !slices.Contains(p.Silent, m.ID):
			case len(p.Served) == 0:
				h.Left = append(h.Left, p.Number)
			default:
				h.Taken = append(h.Taken, p.Number)
				h.By = append(h.By, p.Served...)
			}
		}
		slices.Sort(h.By)
		h.By = slices.Compact(h.By)
		all = append(all, h)
	}
	return all
}

// String returns a text that follows the name of the worker; "" if it has served no partition.
func (h *Hanging) String() string {
	var parts []string
	if len(h.Taken) > 0 {
		parts = append(parts, named(h.Taken)+" that it served "+areOrIs(h.Taken)+" served by "+clipped(h.By)+" now")
	}
	if len(h.Left) > 0 {
		parts = append(parts, named(h.Left)+" that it serves "+standsOrStand(h.Left)+" still until another worker takes over, after the member TTL (15 s by default)")
	}
	return strings.Join(parts, ", and ")
}

// named returns partitions in words.
func named(partitions []int) string {
	if len(partitions) == 1 {
		return "partition " + strconv.Itoa(partitions[0])
	}
	return "partitions " + Ranges(partitions)
}

func areOrIs(partitions []int) string {
	if len(partitions) == 1 {
		return "is"
	}
	return "are"
}

func standsOrStand(partitions []int) string {
	if len(partitions) == 1 {
		return "stands"
	}
	return "stand"
}

// Ranges returns sorted numbers in short form: 0 3 5-7.
func Ranges(sorted []int) string {
	var out []string
	for i := 0; i < len(sorted); {
		j := i
		for j+1 < len(sorted) && sorted[j+1] == sorted[j]+1 {
			j++
		}
		switch {
		case j > i+1:
			out = append(out, fmt.Sprintf("%d-%d", sorted[i], sorted[j]))
		default:
			for _, p := range sorted[i : j+1] {
				out = append(out, strconv.Itoa(p))
			}
		}
		i = j + 1
	}
	return strings.Join(out, " ")
}
