package audit

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/examples/flights"
)

// checkStats compares the statistics of every airport, field by field.
func (a *auditor) checkStats() {
	for _, code := range a.tally.Codes() {
		raw, ok := a.stored.Docs[code][flights.DocStats]
		if !ok {
			a.differ(SumsAgree, code, flights.DocStats, "no document", "one")
			continue
		}
		var s flights.Stats
		if err := json.Unmarshal(raw, &s); err != nil {
			a.differ(SumsAgree, code, flights.DocStats, string(raw), "statistics")
			continue
		}
		a.verdict.Airports[code] = s
		want := a.tally[code]
		a.check(SumsAgree, code, "departures", s.Departures, want.Departures)
		a.check(SumsAgree, code, "arrivals", s.Arrivals, want.Arrivals)
		a.check(SumsAgree, code, "delay_sum", s.DelaySum, want.DelaySum)
		a.check(SumsAgree, code, "distance_sum", s.DistanceSum, want.DistanceSum)
		a.check(SumsAgree, code, "on_time", s.OnTime, want.OnTime)
	}
	for _, space := range slices.Sorted(maps.Keys(a.stored.Docs)) {
		if _, ok := a.tally[space]; !ok && space != flights.Nation {
			a.differ(SumsAgree, space, "space", "documents", "none: it is not in the input")
		}
	}
}

// checkWatches compares the last values of the watches, and the stored documents, with
// the plain pass.
func (a *auditor) checkWatches() {
	for _, code := range a.run.Watched {
		want := Expect(a.tally.Punctuality(code))
		a.check(WatchesCurrent, code, "watched "+flights.DocPunctuality, a.run.Punctuality[code], want)
		a.check(WatchesCurrent, code, flights.DocPunctuality, a.text(code, flights.DocPunctuality), want)
	}
	want := Expect(a.tally.Ranking(a.run.Watched), true)
	a.check(WatchesCurrent, flights.Nation, "watched "+flights.DocRanking, a.run.Ranking, want)
	a.check(WatchesCurrent, flights.Nation, flights.DocRanking, a.text(flights.Nation, flights.DocRanking), want)
}

// text returns the JSON text of a stored document, in the form of Expect.
func (a *auditor) text(space, doc string) string {
	raw, ok := a.stored.Docs[space][doc]
	if !ok {
		return absent
	}
	v, err := settle.ValueOf(raw)
	if err != nil {
		return string(raw)
	}
	return v.String()
}

const absent = "absent"

// Expect returns the JSON text by which a document is compared: that of v, or "absent".
func Expect(v any, exists bool) string {
	if !exists {
		return absent
	}
	text, err := settle.ValueOf(v)
	if err != nil {
		return err.Error()
	}
	return text.String()
}

// checkBuckets compares every document of the buckets with the state that follows from
// the log.
func (a *auditor) checkBuckets() error {
	logged, err := replay(a.stored.Commits)
	if err != nil {
		return err
	}
	for _, space := range slices.Sorted(maps.Keys(logged)) {
		for _, doc := range slices.Sorted(maps.Keys(logged[space])) {
			raw, ok := a.stored.Docs[space][doc]
			if !ok {
				a.differ(SumsAgree, space, doc+" in the bucket", "nothing", "what the log has")
				continue
			}
			var saved any
			if err := json.Unmarshal(raw, &saved); err != nil {
				return fmt.Errorf("bucket, document %s of %s: %w", doc, space, err)
			}
			if !reflect.DeepEqual(saved, logged[space][doc]) {
				a.differ(SumsAgree, space, doc+" in the bucket", string(raw), fmt.Sprintf("%v, as in the log", logged[space][doc]))
			}
		}
	}
	for _, space := range slices.Sorted(maps.Keys(a.stored.Docs)) {
		for _, doc := range slices.Sorted(maps.Keys(a.stored.Docs[space])) {
			if _, ok := logged[space][doc]; !ok {
				a.differ(SumsAgree, space, doc+" in the bucket", string(a.stored.Docs[space][doc]), "nothing, as in the log")
			}
		}
	}
	return nil
}
