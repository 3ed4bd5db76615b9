package worldtest

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
)

// EventuallyEnded waits until n events of a space have receipts.
func (w *World) EventuallyEnded(space string, n int) {
	w.Helper()
	w.Eventually(fmt.Sprintf("%d events of %s have ended", n, space), func() bool { return len(w.Receipts(space)) >= n })
}

// WantEnded checks that exactly these events have ended, each once and in this order.
func (w *World) WantEnded(space string, ids ...string) {
	w.Helper()
	var got []string
	for _, rc := range w.Receipts(space) {
		got = append(got, rc.Event)
	}
	for i := range min(len(got), len(ids)) {
		if got[i] != ids[i] {
			w.Errorf("space %s: the event that ended as number %d is %s, want %s", space, i+1, got[i], ids[i])
			return
		}
	}
	if len(got) != len(ids) {
		w.Errorf("%d events of space %s have ended, want %d", len(got), space, len(ids))
	}
}

// Ends lists how the events of a space have ended, each with its outcome and its failed attempts.
func (w *World) Ends(space string) (ends []string) {
	w.Helper()
	for _, rc := range w.Receipts(space) {
		ends = append(ends, fmt.Sprint(rc.Event, " ", rc.Outcome, " ", rc.Attempts))
	}
	return ends
}

// EventuallyEnds waits for up to ten minutes until the events of a space have ended like this.
func (w *World) EventuallyEnds(space string, want ...string) {
	w.Helper()
	for began := time.Now(); !slices.Equal(w.Ends(space), want); w.Pass(time.Second) {
		if time.Since(began) > 10*time.Minute {
			w.Fatalf("ten minutes later, the events of %s end as %v, want %v; the processes have logged:\n%s", space, w.Ends(space), want, w.Log)
		}
	}
}

// WantPosition checks where the next owner of a partition begins to read the lane.
func (w *World) WantPosition(partition int, want uint64) {
	w.Helper()
	if got := w.Server.LoadPosition(partition, "lane"); got != want {
		w.Errorf("the lane position of partition %d is %d, want %d", partition, got, want)
	}
}

// SaveAsAnother saves the state of a space from its log, like a deposed owner that has read the log
// since.
func (w *World) SaveAsAnother(space string) {
	w.Helper()
	r, err := replica.Load(space, w.Server.LoadState(space))
	if err == nil {
		err = history.Replay(w.Context(), w.Client, r)
	}
	if err != nil {
		w.Fatal(err)
	}
	c, err := r.Checkpoint()
	if err != nil {
		w.Fatal(err)
	}
	for _, d := range c.Docs {
		if _, err := w.Server.SaveDoc(space, d); err != nil {
			w.Fatal(err)
		}
	}
	if _, err := w.Server.SaveMark(space, c.Mark); err != nil {
		w.Fatal(err)
	}
}

// Numbered returns the ids e1 to en.
func Numbered(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = "e" + strconv.Itoa(i+1)
	}
	return ids
}

// SpacesIn returns n names of spaces in a partition, given the number of partitions.
func SpacesIn(partition, of, n int) (names []string) {
	for i := 0; len(names) < n; i++ {
		if name := "s" + strconv.Itoa(i); model.PartitionOf(name, of) == partition {
			names = append(names, name)
		}
	}
	return names
}

var (
	leftOut = regexp.MustCompile(` left_out=(\d+)$`)
	because = regexp.MustCompile(` error=.*$`)
)

// Faults groups lines of a journal by the fault that they report: the lines about each fault, and its
// number of occurrences, including those that the lines count as left out.
func Faults(lines []string) (written, met map[string]int) {
	written, met = map[string]int{}, map[string]int{}
	for _, line := range lines {
		others := 0
		if m := leftOut.FindStringSubmatch(line); m != nil {
			others, _ = strconv.Atoi(m[1])
		}
		fault := because.ReplaceAllString(line, "")
		written[fault]++
		met[fault] += 1 + others
	}
	return written, met
}
