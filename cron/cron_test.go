package cron

import (
	"slices"
	"strings"
	"testing"
	"time"
)

const layout = "2006-01-02 15:04:05 -0700"

// times lists the next n times after a time, in the zone of the expression.
func times(t *testing.T, text, after string, n int) []string {
	t.Helper()
	s, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	at, err := time.Parse(layout, after)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for range n {
		if at = s.Next(at); at.IsZero() {
			break
		}
		list = append(list, at.In(s.zone).Format(layout))
	}
	return list
}

func TestNext_IsTheFirstTimeBehindAnother(t *testing.T) {
	for _, c := range []struct {
		text, after string
		want        []string
	}{
		{"0 9 * * *", "2026-11-21 09:00:00 +0000", []string{"2026-11-22 09:00:00 +0000", "2026-11-23 09:00:00 +0000"}},
		{"0 9 * * *", "2026-11-21 08:59:59 +0000", []string{"2026-11-21 09:00:00 +0000"}},
		{"*/20 * * * *", "2026-11-21 09:05:00 +0000", []string{"2026-11-21 09:20:00 +0000", "2026-11-21 09:40:00 +0000", "2026-11-21 10:00:00 +0000"}},
		{"30 0 9 * * *", "2026-11-21 09:00:00 +0000", []string{"2026-11-21 09:00:30 +0000"}},
		{"0 9 * * MON-FRI", "2026-11-20 09:00:00 +0000", []string{"2026-11-23 09:00:00 +0000"}},
		{"0 0 13 * FRI", "2026-11-08 00:00:00 +0000", []string{"2026-11-13 00:00:00 +0000", "2026-11-20 00:00:00 +0000"}},
		{"0 0 L * *", "2026-11-21 00:00:00 +0000", []string{"2026-11-30 00:00:00 +0000", "2026-12-31 00:00:00 +0000"}},
		{"0 0 29 2 *", "2026-11-21 00:00:00 +0000", []string{"2028-02-29 00:00:00 +0000"}},
		{"@daily", "2026-11-21 00:00:00 +0000", []string{"2026-11-22 00:00:00 +0000"}},
		{"@every 90s", "2026-11-21 00:00:00 +0000", []string{"2026-11-21 00:01:30 +0000", "2026-11-21 00:03:00 +0000"}},
		{"CRON_TZ=Asia/Kolkata 0 9 * * *", "2026-11-21 00:00:00 +0000", []string{"2026-11-21 09:00:00 +0530"}},
	} {
		if got := times(t, c.text, c.after, len(c.want)); !slices.Equal(got, c.want) {
			t.Errorf("%s after %s: %v, want %v", c.text, c.after, got, c.want)
		}
	}
}

func TestNext_ADailyJobRunsOnceOnEachOfTheDaysOnWhichTheClocksChange(t *testing.T) {
	for _, c := range []struct {
		text, after string
		want        []string
	}{
		{ // 02:30 does not exist on March 29
			"CRON_TZ=Europe/Berlin 30 2 * * *", "2026-03-27 12:00:00 +0100",
			[]string{"2026-03-28 02:30:00 +0100", "2026-03-29 03:30:00 +0200", "2026-03-30 02:30:00 +0200"},
		},
		{ // 02:30 comes twice on October 25
			"CRON_TZ=Europe/Berlin 30 2 * * *", "2026-10-23 12:00:00 +0200",
			[]string{"2026-10-24 02:30:00 +0200", "2026-10-25 02:30:00 +0200", "2026-10-26 02:30:00 +0100"},
		},
		{
			"CRON_TZ=America/New_York 30 1 * * *", "2026-10-31 12:00:00 -0400",
			[]string{"2026-11-01 01:30:00 -0400", "2026-11-02 01:30:00 -0500"},
		},
		{ // by half an hour
			"CRON_TZ=Australia/Lord_Howe 15 2 * * *", "2026-10-03 00:00:00 +1030",
			[]string{"2026-10-03 02:15:00 +1030", "2026-10-04 02:45:00 +1100", "2026-10-05 02:15:00 +1100"},
		},
		{ // midnight does not exist
			"CRON_TZ=America/Santiago 0 0 * * *", "2026-09-04 12:00:00 -0400",
			[]string{"2026-09-05 00:00:00 -0400", "2026-09-06 01:00:00 -0300", "2026-09-07 00:00:00 -0300"},
		},
		{ // two readings of one time are one
			"CRON_TZ=Europe/Berlin 30 2,3 * * *", "2026-03-28 12:00:00 +0100",
			[]string{"2026-03-29 03:30:00 +0200", "2026-03-30 02:30:00 +0200"},
		},
		{ // from in between the two
			"CRON_TZ=Europe/Berlin 30 2 * * *", "2026-10-25 02:45:00 +0200",
			[]string{"2026-10-26 02:30:00 +0100"},
		},
	} {
		if got := times(t, c.text, c.after, len(c.want)); !slices.Equal(got, c.want) {
			t.Errorf("%s after %s: %v, want %v", c.text, c.after, got, c.want)
		}
	}
}

func TestNext_AJobOfEveryHourGoesByTheTimeThatPasses(t *testing.T) {
	for _, after := range []string{"2026-03-28 23:00:00 +0100", "2026-10-24 23:00:00 +0200"} {
		s, err := Parse("CRON_TZ=Europe/Berlin 0,30 * * * *")
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(layout, after)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			next := s.Next(at)
			if next.Sub(at) != 30*time.Minute {
				t.Errorf("after %s comes %s", at.In(s.zone), next.In(s.zone))
			}
			at = next
		}
	}
}

// On every day, a job with a fixed hour runs exactly once, and in order.
func TestNext_EveryDayOfTwoYearsHasItsRun(t *testing.T) {
	for _, zone := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Asia/Kolkata", "Pacific/Apia"} {
		for _, minute := range []string{"0 0", "30 1", "15 2", "59 2", "0 3", "30 23"} {
			s, err := Parse("CRON_TZ=" + zone + " " + minute + " * * *")
			if err != nil {
				t.Fatal(err)
			}
			at := time.Date(2026, 1, 1, 23, 45, 0, 0, s.zone)
			for day := 2; day < 732; day++ {
				next := s.Next(at)
				want := time.Date(2026, 1, day, 12, 0, 0, 0, s.zone)
				if !next.After(at) || next.In(s.zone).YearDay() != want.YearDay() || next.In(s.zone).Year() != want.Year() {
					t.Fatalf("%s %s: after %s comes %s", zone, minute, at.In(s.zone), next.In(s.zone))
				}
				at = next
			}
		}
	}
}

func TestParse_RefusesWhatIsNoExpressionAndSaysWhy(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "empty",
		"* * *":                          "fields",
		"61 * * * *":                     `the minute, "61"`,
		"0 9 * * 8":                      `the day of the week, "8"`,
		"0 0 25 * * *":                   `the hour, "25"`,
		"CRON_TZ=UTC 0 9 x * *":          `the day of the month, "x"`,
		"0 0 30 2 *":                     "no such time",
		"CRON_TZ=Mars/Olympus * * * * *": "Mars/Olympus",
	} {
		_, err := Parse(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want one about %q", text, err, want)
		}
	}
}
