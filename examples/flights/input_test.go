package flights

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const good = `{"date":"2001/01/01 00:47","delay":66,"distance":1750,"origin":"DTW","destination":"LAS"}`

// with is good with one thing replaced.
func with(old, replacement string) string { return strings.Replace(good, old, replacement, 1) }

func compressed(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(text))
	_ = z.Close()
	return b.String()
}

// damaged flips the last byte of the checksum.
func damaged(z string) string {
	b := []byte(z)
	b[len(b)-5] ^= 1
	return string(b)
}

func TestBadInputIsRefusedWithFileEntryFieldAndRemedy(t *testing.T) {
	const (
		array    = `it must be an array of {"date":"2001/01/31 09:30","delay":-3,"distance":407,"origin":"LAS","destination":"OAK"}`
		object   = `an entry is {"date":"2001/01/31 09:30","delay":-3,"distance":407,"origin":"LAS","destination":"OAK"}`
		date     = `use a string such as "2001/01/31 09:30" (year/month/day hour:minute)`
		delay    = `use a whole number of minutes, negative if the flight was early`
		distance = `use a whole number of miles, 0 or more`
		code     = `use an airport code such as "LAS": letters, digits, '-' and '_'`
	)
	gz := compressed("[" + good + "]")
	for name, c := range map[string]struct{ input, want string }{
		"empty":                   {"", "in.json: is empty; " + array},
		"only white space":        {" \n", "in.json: is empty; " + array},
		"empty array":             {"[]", "in.json: has no flights: the array is empty; give it at least one entry"},
		"not JSON":                {"date,delay\n", "in.json: is not JSON: invalid character 'd' at start of value at byte 0; " + array},
		"an object":               {good, "in.json: is a JSON object, not an array; " + array},
		"a string":                {`"flights"`, "in.json: is a JSON string, not an array; " + array},
		"null":                    {`null`, "in.json: is a JSON null, not an array; " + array},
		"entry is no object":      {"[" + good + ",7]", "in.json: entry 2: is a JSON number, not an object; " + object},
		"entry is null":           {"[null]", "in.json: entry 1: is a JSON null, not an object; " + object},
		"syntax error":            {"[" + good + ",{date:1}]", "in.json: entry 2: is not JSON: invalid character 'd' at start of string (expecting '\"') at byte 92; " + array},
		"missing comma":           {"[" + good + good + "]", "in.json: entry 2: is not JSON: invalid character '{' after array element (expecting ',' or ']') at byte 90; " + array},
		"field twice":             {"[" + with(`"delay":66`, `"delay":66,"delay":67`) + "]", "in.json: entry 1: field \"delay\": is there twice; keep one of them"},
		"cut short in an entry":   {"[" + good[:30], "in.json: entry 1: the JSON ends in the middle; the file was cut short: fetch or write it again"},
		"cut short after one":     {"[" + good + ",", "in.json: entry 2: the JSON ends in the middle; the file was cut short: fetch or write it again"},
		"not closed":              {"[" + good, "in.json: entry 2: the JSON ends in the middle; the file was cut short: fetch or write it again"},
		"more after it":           {"[" + good + "]\n[]", "in.json: has more after the array, which ends at byte 91; remove what follows"},
		"garbage after it":        {"[" + good + "] x", "in.json: has more after the array, which ends at byte 91; remove what follows"},
		"no date":                 {"[" + with(`"date":"2001/01/01 00:47",`, "") + "]", `in.json: entry 1: field "date": is missing; ` + date},
		"date is a number":        {"[" + with(`"2001/01/01 00:47"`, "2001") + "]", `in.json: entry 1: field "date": is 2001, not a string; ` + date},
		"date without a time":     {"[" + with("2001/01/01 00:47", "2001/01/01") + "]", `in.json: entry 1: field "date": is "2001/01/01", which is no date and time; ` + date},
		"date does not exist":     {"[" + with("2001/01/01", "2001/02/30") + "]", `in.json: entry 1: field "date": is "2001/02/30 00:47", which is no date and time; ` + date},
		"no delay":                {"[" + with(`"delay":66,`, "") + "]", `in.json: entry 1: field "delay": is missing; ` + delay},
		"delay is a string":       {"[" + with("66", `"late"`) + "]", `in.json: entry 1: field "delay": is "late", not a number; ` + delay},
		"delay is null":           {"[" + with("66", "null") + "]", `in.json: entry 1: field "delay": is null, not a number; ` + delay},
		"delay with a fraction":   {"[" + with("66", "66.5") + "]", `in.json: entry 1: field "delay": is 66.5, not a whole number; ` + delay},
		"delay far too large":     {"[" + with("66", "99999999999999999999") + "]", `in.json: entry 1: field "delay": is 99999999999999999999, not between -1000000 and 1000000; ` + delay},
		"long value":              {"[" + with("66", `"`+strings.Repeat("9", 99)+`"`) + "]", `in.json: entry 1: field "delay": is "` + strings.Repeat("9", 39) + `…, not a number; ` + delay},
		"no distance":             {"[" + with(`"distance":1750,`, "") + "]", `in.json: entry 1: field "distance": is missing; ` + distance},
		"distance is negative":    {"[" + with("1750", "-1") + "]", `in.json: entry 1: field "distance": is -1, not between 0 and 1000000; ` + distance},
		"distance is an array":    {"[" + with("1750", "[1]") + "]", `in.json: entry 1: field "distance": is [1], not a number; ` + distance},
		"no origin":               {"[" + good + "," + with(`"origin":"DTW",`, "") + "]", `in.json: entry 2: field "origin": is missing; ` + code},
		"origin is a number":      {"[" + with(`"DTW"`, "1") + "]", `in.json: entry 1: field "origin": is 1, not a string; ` + code},
		"origin is empty":         {"[" + with("DTW", "") + "]", `in.json: entry 1: field "origin": airport "": is empty; ` + code},
		"origin with a dot":       {"[" + with("DTW", "D.W") + "]", `in.json: entry 1: field "origin": airport "D.W": character '.' is not allowed; use letters, digits, '-' and '_'; ` + code},
		"origin with a star":      {"[" + with("DTW", "D*") + "]", `in.json: entry 1: field "origin": airport "D*": character '*' is not allowed; use letters, digits, '-' and '_'; ` + code},
		"origin with a space":     {"[" + with("DTW", "D W") + "]", `in.json: entry 1: field "origin": airport "D W": character ' ' is not allowed; use letters, digits, '-' and '_'; ` + code},
		"origin with a slash":     {"[" + with("DTW", "D/W") + "]", `in.json: entry 1: field "origin": airport "D/W": character '/' is not allowed; use letters, digits, '-' and '_'; ` + code},
		"destination is missing":  {"[" + with(`,"destination":"LAS"`, "") + "]", `in.json: entry 1: field "destination": is missing; ` + code},
		"destination is reserved": {"[" + with("LAS", "nation") + "]", `in.json: entry 1: field "destination": airport "nation": this is the name of the space that ranks airports; ` + code},
		"destination is too long": {"[" + with("LAS", strings.Repeat("L", 65)) + "]", `in.json: entry 1: field "destination": airport "` + strings.Repeat("L", 65) + `": is 65 characters long, 64 are allowed; ` + code},
		"empty gzip":              {compressed(""), "in.json: is empty; " + array},
		"gzip of something else":  {compressed("hello"), "in.json: is not JSON: invalid character 'h' at start of value at byte 0; " + array},
		"gzip cut short":          {gz[:len(gz)-12], "in.json: the gzip data ends in the middle; the file was cut short: fetch or compress it again"},
		"gzip cut in its header":  {gz[:5], "in.json: the gzip data ends in the middle; the file was cut short: fetch or compress it again"},
		"gzip without its end":    {gz[:len(gz)-4], "in.json: the gzip data ends in the middle; the file was cut short: fetch or compress it again"},
		"gzip damaged":            {damaged(gz), "in.json: the gzip data is damaged: gzip: invalid checksum; fetch or compress it again"},
		"garbage after the gzip":  {gz + "hello, world", "in.json: the gzip data is damaged: gzip: invalid header; fetch or compress it again"},
		"gzip of another version": {"\x1f\x8b\x07" + gz[3:], "in.json: the gzip data is damaged: gzip: invalid header; fetch or compress it again"},
	} {
		t.Run(name, func(t *testing.T) {
			flights, err := Parse("in.json", strings.NewReader(c.input))
			if err == nil {
				t.Fatalf("accepted as %d flights", len(flights))
			}
			if flights != nil {
				t.Error("flights were returned beside the error")
			}
			if err.Error() != c.want {
				t.Errorf("message\n got %s\nwant %s", err, c.want)
			}
			if _, ok := errors.AsType[*InputError](err); !ok {
				t.Errorf("the error is a %T, want an *InputError", err)
			}
		})
	}
}

func TestCompressionIsSeenByContentNotByName(t *testing.T) {
	want := Flight{ID: "f00001", Date: "2001/01/01 00:47", Delay: 66, Distance: 1750, Origin: "DTW", Destination: "LAS"}
	for name, text := range map[string]string{
		"flights.json":    "[" + good + "]",
		"flights.gz":      "[" + good + "]\n",
		"flights.txt":     compressed("[" + good + "]"),
		"flights.json.gz": compressed(" [ " + good + " ] "),
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		flights, err := Load(path)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(flights) != 1 || flights[0] != want {
			t.Errorf("%s: got %+v, want %+v", name, flights, want)
		}
	}
}

func TestUnknownFieldsAreIgnored(t *testing.T) {
	flights, err := Parse("in.json", strings.NewReader("["+with("{", `{"carrier":{"code":"WN"},`)+"]"))
	if err != nil || len(flights) != 1 {
		t.Errorf("got %v, %v; want one flight", flights, err)
	}
}

func TestLoadSaysWhichFileIsMissing(t *testing.T) {
	if _, err := Load("none.json"); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "none.json") {
		t.Errorf("got %v", err)
	}
}

func TestBuiltInFlightsAreThoseOfTheSource(t *testing.T) {
	flights, err := BuiltIn()
	if err != nil {
		t.Fatal(err)
	}
	tally := Plain(flights)
	total := tally.Total()
	if len(flights) != 20_000 || len(tally) != 224 {
		t.Errorf("%d flights between %d airports, want 20000 and 224", len(flights), len(tally))
	}
	if total.Departures != 20_000 || total.Arrivals != 20_000 || total.DelaySum != 154_078 || total.DistanceSum != 14_476_934 {
		t.Errorf("totals are %+v, want 20000 departures, 20000 arrivals, delay 154078, distance 14476934", total)
	}
	if flights[0].ID != "f00001" || flights[19_999].ID != "f20000" {
		t.Errorf("ids run from %s to %s, want f00001 to f20000", flights[0].ID, flights[19_999].ID)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("[" + good + "]"))
	f.Add([]byte(compressed("[" + good + "]")))
	f.Add([]byte("[{}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		flights, err := Parse("in", bytes.NewReader(text))
		if err == nil {
			Plain(flights)
			return
		}
		if _, ok := errors.AsType[*InputError](err); !ok {
			t.Errorf("the error is no *InputError: %v", err)
		}
	})
}
