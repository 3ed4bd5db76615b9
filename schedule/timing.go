package schedule

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/settlehq/settle/cron"
)

// maxCounted bounds the missed occurrences of a cron expression that one turn counts. Those beyond are not counted.
const maxCounted = 10_000

// cronFields is the number of fields of a cron expression.
const cronFields = 5

// timing computes the occurrences of a definition.
type timing struct {
	cron *cron.Schedule
	// every, anchor, jitter, start and end are in milliseconds.
	every, anchor, jitter, start, end int64
	key                               string // of the jitter
}

// cron parses the expression; nil for an interval.
func (d *Definition) cron() (*cron.Schedule, error) {
	if d.Cron == "" {
		return nil, nil
	}
	if len(d.Cron) > maxText || len(d.Zone) > maxText {
		return nil, fmt.Errorf("the cron expression and its zone have at most %d characters each", maxText)
	}
	if n := len(strings.Fields(d.Cron)); n != cronFields || strings.Contains(d.Cron, "=") {
		return nil, fmt.Errorf("cron expression %q: it has %d fields; write five, minute hour day month weekday, such as \"0 3 * * *\", and the zone apart", d.Cron, n)
	}
	zone := d.zone()
	if zone == "Local" || strings.ContainsAny(zone, " \t\n") {
		return nil, fmt.Errorf("zone %q: write a name such as \"Europe/Berlin\"", zone)
	}
	s, err := cron.Parse("CRON_TZ=" + zone + " " + d.Cron)
	if err != nil {
		if _, unknown := time.LoadLocation(zone); unknown != nil {
			return nil, fmt.Errorf("zone %q is not known: write a name such as \"Europe/Berlin\"", zone)
		}
		return nil, fmt.Errorf("%s", strings.Replace(err.Error(), "CRON_TZ="+zone+" ", "", 1))
	}
	return s, nil
}

// timing returns the occurrences of a valid definition.
func (d *Definition) timing(key string, anchor int64) (t timing, err error) {
	t = timing{every: d.Every.Milliseconds(), anchor: anchor, jitter: d.Jitter.Milliseconds(), start: ms(d.Start), end: ms(d.End), key: key}
	if t.start != 0 {
		t.anchor = t.start
	}
	t.cron, err = d.cron()
	return t, err
}

// ms returns a time in milliseconds, 0 for the zero time.
func ms(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// next returns the first occurrence after a time, 0 if there is none.
func (t *timing) next(after int64) (at int64) {
	if t.start != 0 {
		after = max(after, t.start-1)
	}
	if t.cron != nil {
		next := t.cron.Next(time.UnixMilli(after).UTC())
		if next.IsZero() {
			return 0
		}
		at = next.UnixMilli()
	} else {
		at = t.anchor + (floorDiv(after-t.anchor, t.every)+1)*t.every
	}
	if t.end != 0 && at >= t.end {
		return 0
	}
	return at
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// due returns the time at which the run of an occurrence starts: at the occurrence, or later by the jitter, and always
// before the next one.
func (t *timing) due(at int64) int64 {
	room := t.jitter
	if room == 0 {
		return at
	}
	if next := t.next(at); next != 0 {
		room = min(room, next-at-1)
	}
	h := fnv.New64a()
	_, _ = h.Write(binary.BigEndian.AppendUint64([]byte(t.key), uint64(at))) // never fails
	// The lower bits of the hash differ little between neighbours; the upper ones are mixed in.
	sum := h.Sum64()
	return at + int64((sum^sum>>32)%uint64(room+1))
}

// arrived returns which occurrences are due at a time, from next on: how many were missed, because they are late by more
// than the window or because more than keep are due; the others; and the first occurrence that is not due.
func (t *timing) arrived(next, now, window int64, keep int) (missed int64, rest []int64, upcoming int64) {
	oldest := now - window
	missed, next = t.pass(next, oldest)
	for next != 0 {
		due := t.due(next)
		if due > now {
			break
		}
		if due < oldest {
			missed++
		} else if rest = append(rest, next); len(rest) > keep {
			rest = rest[1:]
			missed++
		}
		next = t.next(next)
	}
	return missed, rest, next
}

// pass counts the occurrences whose successor is not after a time: each of them was due before it.
func (t *timing) pass(from, oldest int64) (n, next int64) {
	next = from
	if t.every != 0 && next != 0 {
		last := oldest
		if t.end != 0 {
			last = min(last, t.end-1)
		}
		if n = max((last-next)/t.every, 0); n > 0 {
			next += n * t.every
		}
		return n, next
	}
	for next != 0 {
		after := t.next(next)
		if after == 0 || after > oldest {
			break
		}
		if n == maxCounted {
			return n, t.next(oldest)
		}
		n, next = n+1, after
	}
	return n, next
}

// count returns the number of occurrences from a time on and before another, at most a bound and one.
func (t *timing) count(from, to int64, bound int) (n int) {
	for at := t.next(from - 1); at != 0 && at < to && n <= bound; at = t.next(at) {
		n++
	}
	return n
}
