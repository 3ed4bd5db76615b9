package audit

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/settlehq/settle/examples/flights"
)

// three are three flights between three airports; A and B are watched, C is not.
var three = []flights.Flight{
	{ID: "f00001", Origin: "A", Destination: "B", Delay: 10, Distance: 100},
	{ID: "f00002", Origin: "A", Destination: "B", Delay: 20, Distance: 200},
	{ID: "f00003", Origin: "C", Destination: "A", Delay: 30, Distance: 300},
}

// run returns what a faultless run of them would report.
func run() Run {
	return Run{
		Flights: three, Watched: []string{"A", "B"},
		Punctuality: map[string]string{"A": punctualityA, "B": "absent"},
		Ranking:     rankingAB,
	}
}

const (
	punctualityA = `{"departures":2,"mean_delay":15,"on_time_share":0.5}`
	rankingAB    = `[{"airport":"A","on_time_share":0.5}]`
	statsA       = `{"departures":2,"arrivals":1,"delay_sum":30,"distance_sum":300,"on_time":1}`
	statsB       = `{"departures":0,"arrivals":2,"delay_sum":0,"distance_sum":0,"on_time":0}`
	statsC       = `{"departures":1,"arrivals":0,"delay_sum":30,"distance_sum":300,"on_time":0}`
)

// logs returns the messages of the LOG streams of a faultless run.
func logs() []string {
	return []string{
		`{"v":1,"sp":"A","rt":"w1","own":true,"cur":{}}`,
		`{"v":1,"sp":"A","rt":"w1","tx":[
			{"n":1,"by":"handle departure","w":[["stats","",{"departures":1,"arrivals":0,"delay_sum":10,"distance_sum":100,"on_time":1}]],"rc":{"ev":"f00001","o":"handled","r":{"flight":"f00001"}}},
			{"n":2,"by":"compute punctuality","w":[["punctuality","",{"departures":1,"mean_delay":10,"on_time_share":1}]]}]}`,
		`{"v":1,"sp":"A","rt":"w1","tx":[
			{"n":3,"by":"handle departure","w":[["stats","",{"departures":2,"arrivals":0,"delay_sum":30,"distance_sum":300,"on_time":1}]],"rc":{"ev":"f00002","o":"handled","r":{"flight":"f00002"}}}]}`,
		`{"v":1,"sp":"A","rt":"w2","own":true,"cur":{}}`,
		`{"v":1,"sp":"A","rt":"w2","tx":[
			{"n":1,"by":"compute punctuality","w":[["punctuality","/departures",2],["punctuality","/mean_delay",15],["punctuality","/on_time_share",0.5]]},
			{"n":2,"by":"handle arrival","w":[["stats","",` + statsA + `]],"rc":{"ev":"C:9:1:0","o":"handled","r":{"flight":"f00003"}}}]}`,
		`{"v":1,"sp":"B","rt":"w1","own":true}`,
		`{"v":1,"sp":"B","rt":"w1","tx":[
			{"n":1,"by":"handle arrival","w":[["stats","",{"departures":0,"arrivals":1,"delay_sum":0,"distance_sum":0,"on_time":0}]],"rc":{"ev":"A:1:1:0","o":"handled","r":{"flight":"f00001"}}},
			{"n":2,"by":"handle arrival","w":[["stats","",` + statsB + `]],"rc":{"ev":"A:1:2:0","o":"handled","r":{"flight":"f00002"}}}]}`,
		`{"v":1,"sp":"C","rt":"w1","own":true}`,
		`{"v":1,"sp":"C","rt":"w1","tx":[
			{"n":1,"by":"handle departure","w":[["stats","",` + statsC + `]],"rc":{"ev":"f00003","o":"handled","r":{"flight":"f00003"}}}]}`,
		`{"v":1,"sp":"nation","rt":"w1","own":true}`,
		`{"v":1,"sp":"nation","rt":"w1","tx":[
			{"n":1,"by":"handle configure","w":[["airports","",["A","B"]]],"rc":{"ev":"configure","o":"handled","r":["A","B"]}},
			{"n":2,"by":"compute ranking","w":[["ranking","",` + rankingAB + `]]}]}`,
	}
}

func docs() map[string]map[string]json.RawMessage {
	raw := func(pairs ...string) map[string]json.RawMessage {
		m := map[string]json.RawMessage{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = json.RawMessage(pairs[i+1])
		}
		return m
	}
	return map[string]map[string]json.RawMessage{
		"A":      raw("stats", statsA, "punctuality", punctualityA),
		"B":      raw("stats", statsB),
		"C":      raw("stats", statsC),
		"nation": raw("airports", `["A","B"]`, "ranking", rankingAB),
	}
}

func stored(t *testing.T, log []string) *Stored {
	t.Helper()
	s := &Stored{Docs: docs(), Partitions: 1}
	for i, text := range log {
		c := Commit{Seq: uint64(i + 1)}
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			t.Fatalf("message %d: %v", i+1, err)
		}
		s.Commits = append(s.Commits, c)
	}
	return s
}

func TestAFaultlessRunIsVerified(t *testing.T) {
	v, err := Judge(run(), stored(t, logs()))
	if err != nil {
		t.Fatal(err)
	}
	want := &Verdict{
		Departures: 3, Arrivals: 3, Receipts: 6, Takeovers: 1, Commits: 11,
		Airports: map[string]flights.Stats{
			"A": {Departures: 2, Arrivals: 1, DelaySum: 30, DistanceSum: 300, OnTime: 1},
			"B": {Arrivals: 2},
			"C": {Departures: 1, DelaySum: 30, DistanceSum: 300},
		},
	}
	if !reflect.DeepEqual(v, want) {
		t.Errorf("got %+v, want %+v", v, want)
	}
	if !v.Verified() {
		t.Error("not verified")
	}
}

// TestEveryTamperingIsFound changes one thing in the faultless run and expects exactly
// that to be reported.
func TestEveryTamperingIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		run  func(*Run)
		log  func([]string) []string
		docs func(map[string]map[string]json.RawMessage)
		want []string
		// breaks are the promises that do not hold.
		breaks []Promise
		// counts are the counts that differ from those of the faultless run
		counts string
	}{
		"a departure has no receipt": {
			breaks: []Promise{NothingLost},
			log:    func(l []string) []string { return slices.Delete(l, 2, 3) },
			want:   []string{"A: departure of f00002: receipts: found 0, expected 1"},
			counts: "lost 1",
		},
		"an arrival has no receipt": {
			breaks: []Promise{NothingLost},
			log: func(l []string) []string {
				l[4] = strings.Replace(l[4], `,"rc":{"ev":"C:9:1:0","o":"handled","r":{"flight":"f00003"}}`, "", 1)
				return l
			},
			want:   []string{"A: arrival at log sequence 5: found no receipt, expected a receipt", "A: arrival of f00003: receipts: found 0, expected 1"},
			counts: "lost 1",
		},
		"an arrival failed": {
			breaks: []Promise{NothingLost},
			log: func(l []string) []string {
				l[4] = strings.Replace(l[4], `"o":"handled"`, `"o":"failed","err":"boom"`, 1)
				return l
			},
			want:   []string{"A: arrival at log sequence 5: found event C:9:1:0 failed: boom, expected handled", "A: arrival of f00003: receipts: found 0, expected 1"},
			counts: "lost 1",
		},
		"a departure was handled twice": {
			breaks: []Promise{NothingTwice},
			log: func(l []string) []string {
				return append(l, strings.Replace(l[8], `"n":1`, `"n":2`, 1))
			},
			want:   []string{"C: departure of f00003: receipts: found 2, expected 1"},
			counts: "duplicates 1",
		},
		"two departures were handled in the wrong order": {
			breaks: []Promise{InOrder},
			log: func(l []string) []string {
				l[1], l[2] = strings.ReplaceAll(l[1], "f00001", "f00002"), strings.ReplaceAll(l[2], "f00002", "f00001")
				return l
			},
			want:   []string{"A: departure at log sequence 3: found flight f00001 after f00002, expected the order of the input"},
			counts: "out of order 1",
		},
		"two arrivals from one origin were handled in the wrong order": {
			breaks: []Promise{InOrder},
			log: func(l []string) []string {
				l[6] = strings.NewReplacer(`"flight":"f00001"`, `"flight":"f00002"`, `"flight":"f00002"`, `"flight":"f00001"`).Replace(l[6])
				return l
			},
			want:   []string{"B: arrival at log sequence 7: found flight f00001 after f00002, expected the order of the input"},
			counts: "out of order 1",
		},
		"a flight arrived elsewhere": {
			breaks: []Promise{NothingLost},
			log: func(l []string) []string {
				l[8] = strings.Replace(l[8], "departure", "arrival", 1)
				return l
			},
			want:   []string{"C: arrival at log sequence 9: found flight f00003, expected it at A", "C: departure of f00003: receipts: found 0, expected 1"},
			counts: "lost 1",
		},
		"a flight that is not in the input": {
			breaks: []Promise{NothingTwice},
			log: func(l []string) []string {
				return append(l, `{"sp":"C","tx":[{"by":"handle arrival","rc":{"ev":"x","o":"handled","r":{"flight":"f9"}}}]}`)
			},
			want: []string{`C: arrival at log sequence 12: found flight "f9", expected a flight of the input`},
		},
		"a document was changed in the bucket": {
			breaks: []Promise{SumsAgree},
			docs: func(d map[string]map[string]json.RawMessage) {
				d["C"]["stats"] = json.RawMessage(strings.Replace(statsC, `"delay_sum":30`, `"delay_sum":31`, 1))
			},
			want: []string{
				"C: delay_sum: found 31, expected 30",
				`C: stats in the bucket: found {"departures":1,"arrivals":0,"delay_sum":31,"distance_sum":300,"on_time":0}, expected map[arrivals:0 delay_sum:30 departures:1 distance_sum:300 on_time:0], as in the log`,
			},
		},
		"a document is missing in the bucket": {
			breaks: []Promise{SumsAgree},
			docs:   func(d map[string]map[string]json.RawMessage) { delete(d, "C") },
			want:   []string{"C: stats: found no document, expected one", "C: stats in the bucket: found nothing, expected what the log has"},
		},
		"a document was added to the bucket": {
			breaks: []Promise{SumsAgree},
			docs: func(d map[string]map[string]json.RawMessage) {
				d["Z"] = map[string]json.RawMessage{"stats": json.RawMessage("1")}
			},
			want: []string{"Z: space: found documents, expected none: it is not in the input", "Z: stats in the bucket: found 1, expected nothing, as in the log"},
		},
		"the log adds up to something else than the bucket": {
			breaks: []Promise{SumsAgree},
			log: func(l []string) []string {
				l[8] = strings.Replace(l[8], `"distance_sum":300`, `"distance_sum":3`, 1)
				return l
			},
			want: []string{`C: stats in the bucket: found ` + statsC + `, expected map[arrivals:0 delay_sum:30 departures:1 distance_sum:3 on_time:0], as in the log`},
		},
		"a watch was left behind": {
			breaks: []Promise{WatchesCurrent},
			run:    func(r *Run) { r.Punctuality["A"] = "absent" },
			want: []string{
				`A: watched punctuality: found absent, expected ` + punctualityA,
			},
		},
		"the ranking that was watched is another one": {
			breaks: []Promise{WatchesCurrent},
			run:    func(r *Run) { r.Ranking = "[]" },
			want:   []string{"nation: watched ranking: found [], expected " + rankingAB},
		},
		"an unobserved document was computed, and did not change": {
			breaks: []Promise{UnwatchedIdle},
			run:    func(r *Run) { r.UnobservedRuns = 2 },
			want:   []string{"all unwatched airports: runs of punctuality: found 2, expected 0"},
			counts: "unobserved 2",
		},
		"an unobserved document was computed, and is in the log": {
			breaks: []Promise{UnwatchedIdle},
			log: func(l []string) []string {
				return append(l, `{"sp":"C","tx":[{"by":"compute punctuality"}]}`)
			},
			want:   []string{"C: log sequence 12: found compute punctuality, expected nothing computed without a watch"},
			counts: "unobserved 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, log := run(), logs()
			if c.run != nil {
				c.run(&r)
			}
			if c.log != nil {
				log = c.log(log)
			}
			s := stored(t, log)
			if c.docs != nil {
				c.docs(s.Docs)
			}
			v, err := Judge(r, s)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range v.Differences {
				got = append(got, d.String())
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("differences\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(c.want, "\n     "))
			}
			for _, p := range []Promise{NothingLost, NothingTwice, InOrder, SumsAgree, WatchesCurrent, UnwatchedIdle} {
				if v.Holds(p) == slices.Contains(c.breaks, p) {
					t.Errorf("%s: holds is %v", p, v.Holds(p))
				}
			}
			if counts := countsOf(v); counts != c.counts {
				t.Errorf("counts: got %q, want %q", counts, c.counts)
			}
			if v.Verified() {
				t.Error("verified")
			}
		})
	}
}

// countsOf lists the counts that should be 0 and are not.
func countsOf(v *Verdict) string {
	var list []string
	add := func(what string, n int) {
		if n != 0 {
			list = append(list, fmt.Sprint(what, " ", n))
		}
	}
	add("lost", v.Lost)
	add("duplicates", v.Duplicates)
	add("out of order", v.OutOfOrder)
	add("unobserved", v.UnobservedRuns)
	return strings.Join(list, ", ")
}

func TestWritesOfALogAreApplied(t *testing.T) {
	for _, c := range []struct{ before, write, want string }{
		{`{}`, `["d","",{"a":1}]`, `{"a":1}`},
		{`{"a":1}`, `["d","/a",2]`, `{"a":2}`},
		{`null`, `["d","/a/b",2]`, `{"a":{"b":2}}`},
		{`{"a":{"b":2},"c":3}`, `["d","/a"]`, `{"c":3}`},
		{`{"a":[1,2]}`, `["d","/a/1",3]`, `{"a":[1,3]}`},
		{`{"a":[1,2]}`, `["d","/a/2",3]`, `{"a":[1,2,3]}`},
		{`{"a/b":1,"~":2}`, `["d","/a~1b",3]`, `{"a/b":3,"~":2}`},
		{`{"a/b":1,"~":2}`, `["d","/~0",3]`, `{"a/b":1,"~":3}`},
		{`{"a":1}`, `["d","/a",null]`, `{"a":null}`},
	} {
		var before any
		var w Write
		if err := json.Unmarshal([]byte(c.before), &before); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(c.write), &w); err != nil {
			t.Fatalf("%s: %v", c.write, err)
		}
		after, err := w.apply(before, w.Path)
		if err != nil {
			t.Errorf("%s to %s: %v", c.write, c.before, err)
			continue
		}
		if got, _ := json.Marshal(after); string(got) != c.want {
			t.Errorf("%s to %s: got %s, want %s", c.write, c.before, got, c.want)
		}
		if unchanged, _ := json.Marshal(before); string(unchanged) != c.before {
			t.Errorf("%s: changed what was there before to %s", c.write, unchanged)
		}
	}
}

func TestALogThatCannotBeReplayedIsAnError(t *testing.T) {
	s := stored(t, append(logs(), `{"sp":"C","tx":[{"by":"handle arrival","w":[["stats","/arrivals/x",1]],"rc":{"ev":"x","o":"failed"}}]}`))
	if _, err := Judge(run(), s); err == nil || !strings.Contains(err.Error(), "log of C, sequence 12, document stats") {
		t.Errorf("got %v", err)
	}
}
