package console

import (
	"context"
	"fmt"
	"html/template"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/internal/doctor"
)

const (
	// doctorAge is how old the report of a page may be: an examination reads the settings of all streams.
	doctorAge = 15 * time.Second
	// doctorPatience bounds an examination.
	doctorPatience = 12 * time.Second
)

func doctorPage() page {
	return page{
		name: "doctor", pattern: "/doctor", nav: "Doctor", icon: "M2 8h3l2-5 3 10 2-5h2",
		open: func(c *Console, q *query) (view, error) {
			return view{load: c.doctorNow, every: doctorAge}, nil
		},
	}
}

// doctorCache has the last report.
type doctorCache struct {
	mu     sync.Mutex
	report *doctor.Report
	at     time.Time
}

func (x *doctorCache) get(ctx context.Context, examine func(context.Context) (*doctor.Report, error)) (*doctor.Report, time.Time, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.report != nil && time.Since(x.at) < doctorAge {
		return x.report, x.at, nil
	}
	ctx, cancel := context.WithTimeout(ctx, doctorPatience)
	defer cancel()
	at := time.Now()
	r, err := examine(ctx)
	if err != nil {
		return nil, at, err
	}
	x.report, x.at = r, at
	return r, at, nil
}

// findingRow is a finding of the doctor.
type findingRow struct {
	doctor.Finding
	Mark, Word string
	Key        string
	Commands   []string // in its advice
	URL        string   // the page of this console that shows more
}

// ticks is a text whose parts between backticks are code.
func ticks(text string) template.HTML {
	var b strings.Builder
	for i, part := range strings.Split(text, "`") {
		part = template.HTMLEscapeString(part)
		if i%2 == 1 {
			part = "<code>" + part + "</code>"
		}
		b.WriteString(part)
	}
	return template.HTML(b.String()) //nolint:gosec // escaped
}

// doctorData is what the page shows.
type doctorData struct {
	Report *doctor.Report
	Bad    []findingRow
	Well   []findingRow
	At     time.Time
}

// commands matches the commands in an advice.
var commands = regexp.MustCompile("`((?:settle|spaceworker|coordinator|nats|nats-server)[^`]*)`")

// checkPages are the pages that show more about what a check finds.
var checkPages = map[string]string{
	doctor.CheckWorkers: "/fleet", doctor.CheckCoordinator: "/fleet", doctor.CheckVersions: "/fleet", doctor.CheckBacklog: "/fleet", doctor.CheckStuck: "/spaces?state=stuck", doctor.CheckConvergence: unsettledURL, doctor.CheckComputing: computingURL, doctor.CheckTasks: failingURL,
	doctor.CheckPrograms: "/programs", doctor.CheckDead: "/dead", doctor.CheckTimers: "/spaces?state=late",
}

func (c *Console) doctorNow(ctx context.Context) (*shown, error) {
	s := &shown{Name: "Doctor", CLI: "settle doctor", Parts: []part{{ID: "report", Template: "doctor-report"}}}
	if c.cfg.Examine == nil {
		s.Title, s.State = "The doctor is not in this process", "dormant"
		s.Parts[0].Data = (*doctorData)(nil)
		return s, nil
	}
	r, at, err := c.doctor.get(ctx, c.cfg.Examine)
	if err != nil {
		return nil, err
	}
	d := &doctorData{Report: r, At: at}
	failures := 0
	for i := range r.Findings {
		f := findingRow{Finding: r.Findings[i], Key: fmt.Sprintf("f-%d", i), Mark: "clean", Word: "ok", URL: checkPages[r.Findings[i].Check]}
		switch f.Level {
		case doctor.Warning:
			f.Mark, f.Word = "invalid", "warning"
		case doctor.Failure:
			f.Mark, f.Word = "failed", "failure"
			failures++
		}
		for _, m := range commands.FindAllStringSubmatch(f.Do, -1) {
			f.Commands = append(f.Commands, m[1])
		}
		if f.Level == doctor.OK {
			d.Well = append(d.Well, f)
		} else {
			d.Bad = append(d.Bad, f)
		}
	}
	slices.SortStableFunc(d.Bad, func(a, b findingRow) int { return int(b.Level) - int(a.Level) })
	s.Data, s.Parts[0].Data = d, d
	switch warnings := len(d.Bad) - failures; {
	case failures > 0:
		s.Title, s.State = display.Count(failures, "thing")+" must be repaired", "failed"
	case warnings > 0:
		s.Title, s.State = display.Count(warnings, "thing")+" can cost something later", "invalid"
	default:
		s.Title, s.State = fmt.Sprintf("All %d checks are well", len(d.Well)), "clean"
	}
	s.Title = strings.TrimSpace(s.Title)
	return s, nil
}
