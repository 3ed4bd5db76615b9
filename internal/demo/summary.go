package demo

import (
	"fmt"
	"io"
	"strings"

	"github.com/settlehq/settle/examples/flights"
	"github.com/settlehq/settle/examples/flights/audit"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/internal/redraw"
)

// maxDifferences is the number of differences that are printed; the rest is counted.
const maxDifferences = 20

// Summary writes the result of a run for people.
func (r *Result) Summary(w io.Writer) error {
	s := &summary{r: r, style: styleFor(w)}
	s.table()
	s.numbers()
	s.verification()
	_, err := io.WriteString(w, s.text.String())
	return err
}

// summary is a summary being written.
type summary struct {
	r     *Result
	style style
	text  strings.Builder
}

func (s *summary) line(format string, args ...any) {
	s.text.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " ") + "\n")
}

// table lists the watched airports in the order of the ranking, with their state in the STATE
// buckets.
func (s *summary) table() {
	s.line("%s", s.style.bold(fmt.Sprintf("The %d busiest airports, as the space %q ranks them", len(s.r.Watched), flights.Nation)))
	s.line("")
	s.line("%s", s.style.faint("      airport  departures  arrivals  mean delay  on time"))
	for i, rank := range s.r.Ranking {
		st := s.r.Verdict.Airports[rank.Airport]
		mean := "-"
		if st.Departures > 0 {
			mean = minutes(float64(st.DelaySum) / float64(st.Departures))
		}
		s.line(" %3d  %-7s  %10s  %8s  %10s  %7s  %s", i+1, rank.Airport, display.Grouped(st.Departures), display.Grouped(st.Arrivals), mean,
			percent(rank.OnTimeShare), s.style.cyan(redraw.Gauge(rank.OnTimeShare, 12)))
	}
	s.line("")
}

// numbers prints the figures.
func (s *summary) numbers() {
	r := s.r.Report
	row := func(name, format string, args ...any) {
		s.line("  %s %s", s.style.faint(fmt.Sprintf("%-9s", name)), fmt.Sprintf(format, args...))
	}
	sent := count(r.EventsSent, "departure")
	if n := r.EventsSent / s.r.Flights; n > 1 {
		sent = fmt.Sprintf("%s: %s, each %s times with its same id", count(r.EventsSent, "event"), count(s.r.Flights, "departure"), display.Grouped(n))
	}
	row("sent", "%s", sent)
	row("handled", "%s and %s in %.1f s: %s a second", count(r.DeparturesHandled, "departure"), count(r.ArrivalsHandled, "arrival"), r.Seconds, display.Grouped(int(r.EventsPerSecond)))
	row("committed", "%s in %s", count(r.Commits, "commit"), count(s.r.Partitions, "log"))
	var killed []string
	for _, n := range s.r.Notes {
		if n.Kind == Killed {
			killed = append(killed, fmt.Sprintf("%s at %.0f %%", n.Worker, 100*n.Share))
		}
	}
	if len(killed) > 0 {
		by := ""
		if s.r.Processes {
			by = count(len(killed), "process") + " by SIGKILL: "
		}
		row("killed", "%s%s", by, strings.Join(killed, ", "))
	}
	row("takeovers", "%s, each of a space that another worker had served", display.Grouped(r.Takeovers))
	s.line("")
}

// verification prints what was verified, or what is wrong.
func (s *summary) verification() {
	v := s.r.Verdict
	if v.Verified() {
		s.line("%s", s.style.bold(s.style.green("Verified"))+" by a plain NATS client, against one plain pass over the input")
	} else {
		s.line("%s", s.style.bold(s.style.red("NOT VERIFIED"))+fmt.Sprintf(": %s", count(len(v.Differences), "difference")))
	}
	s.line("")
	unwatched := len(s.r.Tally) - len(s.r.Watched)
	n := s.r.Flights
	s.promise(audit.NothingLost, "each of %s and %s has a receipt", count(n, "departure"), count(n, "arrival"))
	s.promise(audit.NothingTwice, "none has a second one")
	s.promise(audit.InOrder, "every airport handled its departures in input order")
	s.promise(audit.SumsAgree, "departures, arrivals, delay and distance of %s", count(len(s.r.Tally), "airport"))
	s.promise(audit.WatchesCurrent, "the ranking and the %s ended up right", count(len(s.r.Watched), "watched airport"))
	if unwatched > 0 {
		s.promise(audit.UnwatchedIdle, "punctuality was never computed for the other %s", count(unwatched, "airport"))
	}
	s.differences()
}

func (s *summary) promise(p audit.Promise, format string, args ...any) {
	mark := s.style.green("✓")
	if !s.r.Verdict.Holds(p) {
		mark = s.style.red("✗")
	}
	s.line("  %s %-15s  %s", mark, p, s.style.faint(fmt.Sprintf(format, args...)))
}

func (s *summary) differences() {
	list := s.r.Verdict.Differences
	if len(list) == 0 {
		return
	}
	s.line("")
	if s.r.Stalled != "" {
		s.line("  %s", s.style.red(s.r.Stalled))
	}
	for _, d := range list[:min(len(list), maxDifferences)] {
		s.line("  %s", d)
	}
	if more := len(list) - maxDifferences; more > 0 {
		s.line("  and %s more", display.Grouped(more))
	}
}
