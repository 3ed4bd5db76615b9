package model

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

const huge = "18446744073709551615"

// commitWith returns a commit of space s with the given members, and a transaction with the given members.
func commitWith(members, tx string) string {
	text := `{"v":1,"sp":"s","rt":"w1"`
	if members != "" {
		text += "," + members
	}
	if tx != "" {
		text += `,"tx":[{"n":1,"by":"handle add",` + tx + `}]`
	}
	if !strings.Contains(members, `"cur"`) {
		text += `,"cur":{}`
	}
	return text + "}"
}

// bounded are stored messages with one field that no version of Settle writes, by decoder.
var bounded = []struct {
	field, text string
	decode      func([]byte) error
}{
	{"sp", `{"v":1,"sp":"a.b","rt":"w1","cur":{}}`, commitError},
	{"sp", `{"v":1,"rt":"w1","cur":{}}`, commitError},
	{"rt", `{"v":1,"sp":"s","rt":"` + strings.Repeat("x", maxShort+1) + `","cur":{}}`, commitError},
	{"ep", commitWith(`"ep":`+huge, ""), commitError},
	{"ep", commitWith(`"ep":7,"own":true`, ""), commitError},
	{"ep", commitWith(`"ep":7,"join":true`, ""), commitError},
	{"ep", commitWith(`"own":true,"join":true`, ""), commitError},
	{"at", commitWith(`"at":`+huge, ""), commitError},
	{"trm", commitWith(`"trm":`+huge, ""), commitError},
	{"n", commitWith(`"try":{"by":"handle add","ev":"e","n":-1}`, ""), commitError},
	{"n", commitWith(`"try":{"by":"handle add","ev":"e","n":9000000000}`, ""), commitError},
	{"f", commitWith(`"cur":{"f":`+huge+`}`, ""), commitError},
	{"h", commitWith(`"cur":{"f":9,"h":[0]}`, ""), commitError},
	{"h", commitWith(`"cur":{"f":9,"h":[10]}`, ""), commitError},
	{"h", commitWith(`"cur":{"f":9,"h":[5,4]}`, ""), commitError},
	{"h", commitWith(`"cur":{"f":9,"h":[5,5]}`, ""), commitError},
	{"h", commitWith(`"cur":{"f":9,"hs":"4+6"}`, ""), commitError},
	{"more than", commitWith(`"cur":{"f":9007199254740992,"hs":"1+4294967295"}`, ""), commitError},
	{"more than", commitWith(`"cur":{"f":9007199254740992,"hs":"1+1048575,2+1048575"}`, ""), commitError},
	{"w", commitWith("", `"w":[["a.b","",1]]`), commitError},
	{"ln", commitWith("", `"rc":{"ev":"e","o":"handled","ln":`+huge+`}`), commitError},
	{"pos", commitWith("", `"rc":{"ev":"e","o":"handled","pos":`+huge+`}`), commitError},
	{"trm", commitWith("", `"rc":{"ev":"e","o":"handled","trm":`+huge+`}`), commitError},
	{"sl", commitWith("", `"rc":{"ev":"e","o":"handled","sl":`+huge+`}`), commitError},
	{"dp", commitWith("", `"rc":{"ev":"e","o":"refused","dp":`+huge+`}`), commitError},
	{"n", commitWith("", `"rc":{"ev":"e","o":"handled","n":-1}`), commitError},
	{"sl", commitWith("", `"ltr":{"id":"e","st":"add","nb":5,"sl":`+huge+`}`), commitError},
	{"nb", commitWith("", `"ltr":{"id":"e","st":"add","nb":-5,"sl":1}`), commitError},
	{"nb", commitWith("", `"ltr":{"id":"e","st":"add","nb":9223372036854775807,"sl":1}`), commitError},
	{"ex", commitWith("", `"ltr":{"id":"e","st":"add","nb":5,"ex":-1,"sl":1}`), commitError},
	{"sl", commitWith("", `"cnl":[{"id":"e","sl":`+huge+`}]`), commitError},
	{"id", commitWith("", `"snd":[{"id":"other:1:1:0","to":"t","st":"add","pos":1}]`), commitError},
	{"pos", commitWith("", `"snd":[{"id":"s:1:1:0","to":"t","st":"add","pos":`+huge+`}]`), commitError},
	{"ptm", commitWith("", `"snd":[{"id":"s:1:1:0","to":"t","st":"add","ptm":`+huge+`}]`), commitError},
	{"bh", commitWith("", `"snd":[{"id":"s:1:1:0","to":"s","st":"add","bh":`+huge+`}]`), commitError},
	{"dp", commitWith("", `"snd":[{"id":"s:1:1:0","to":"s","st":"add","dp":`+huge+`}]`), commitError},
	{"sl", commitWith("", `"snd":[{"id":"s:1:1:0","to":"s","st":"add","nb":5,"sl":`+huge+`}]`), commitError},
	{"nb", commitWith("", `"snd":[{"id":"s:1:1:0","to":"s","st":"add","nb":-1}]`), commitError},
	{"ex", commitWith("", `"snd":[{"id":"s:1:1:0","to":"s","st":"add","ex":-1}]`), commitError},
	{"tp", commitWith("", `"tp":"`+strings.Repeat("x", maxParent+1)+`"`), commitError},
	{"ep", `{"v":1,"ep":` + huge + `,"rt":"w1","cur":{}}`, markError},
	{"bar", `{"v":1,"ep":1,"rt":"w1","cur":{},"bar":-1}`, markError},
	{"fst", `{"v":1,"ep":1,"rt":"w1","cur":{},"fst":` + huge + `}`, markError},
	{"pur", `{"v":1,"ep":1,"rt":"w1","cur":{},"pur":[{"r":1,"s":` + huge + `}]}`, markError},
	{"h", `{"v":1,"ep":1,"rt":"w1","cur":{"f":1,"h":[2]}}`, markError},
	{"in", `{"v":1,"ep":1,"rt":"w1","cur":{},"in":{"a":` + huge + `}}`, markError},
	{"in", `{"v":1,"ep":1,"rt":"w1","cur":{},"out":{"a":` + huge + `}}`, markError},
	{"pos", `{"v":1,"ep":1,"rt":"w1","cur":{},"own":[{"id":"s:1:1:0","to":"s","st":"add","pos":` + huge + `}]}`, markError},
	{"in", `{"in":{"a":` + huge + `}}`, positionsError},
	{"intrm", `{"in":{"a":1},"intrm":{"a":[` + huge + `,1]}}`, positionsError},
	{"intrm", `{"in":{"a":1},"intrm":{"a":[1,1,2,2,3,3,4,4,5,5]}}`, positionsError},
	{"sl", `{"id":"e","st":"add","nb":5,"sl":` + huge + `}`, waitingError},
	{"sq", `{"id":"e","st":"add","nb":5,"sl":1,"sq":` + huge + `}`, waitingError},
	{"i", `{"id":"e","st":"add","nb":5,"sl":1,"i":-1}`, waitingError},
	{"commit", `{"v":1,"space":"s","stream":"add","event":"e","outcome":"failed","error":"","commit":` + huge + `}`, deadError},
	{"attempts", `{"v":1,"space":"s","stream":"add","event":"e","outcome":"failed","error":"","commit":1,"attempts":-1}`, deadError},
	{"up_to", `{"up_to":` + huge + `}`, aheadError},
	{"done", `{"up_to":1,"aside":[{"space":"s","done":` + huge + `}]}`, aheadError},
	{"last", `{"up_to":1,"aside":[{"space":"s","done":1,"last":` + huge + `}]}`, aheadError},
}

func commitError(data []byte) error    { _, err := DecodeCommit(data); return err }
func markError(data []byte) error      { _, err := DecodeMark(data); return err }
func positionsError(data []byte) error { _, err := DecodePositions(data); return err }
func waitingError(data []byte) error   { _, err := DecodeWaiting(data); return err }
func deadError(data []byte) error      { _, err := DecodeDead(data); return err }
func aheadError(data []byte) error     { _, err := DecodeAhead(data); return err }

// A field that no version of Settle writes is refused by name, with little memory.
func TestBounds_EveryFieldOfAStoredMessageHasOne(t *testing.T) {
	for i, c := range bounded {
		t.Run(fmt.Sprintf("%d %s", i, c.field), func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := c.decode([]byte(c.text))
			runtime.ReadMemStats(&after)
			if err == nil {
				t.Fatalf("%.300s was decoded", c.text)
			}
			if bound, is := errors.AsType[*BoundError](err); is && bound.Field != c.field || !is && !strings.Contains(err.Error(), c.field) {
				t.Errorf("%.300s: %v; want field %s", c.text, err, c.field)
			}
			if size := len(err.Error()); size > 500 {
				t.Errorf("the error has %d bytes: %.500s", size, err)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
				t.Errorf("%.300s took %d bytes of memory", c.text, used)
			}
		})
	}
}

// Values at the bounds are accepted.
func TestBounds_ValuesAtTheBoundsAreDecoded(t *testing.T) {
	most := fmt.Sprint(uint64(MaxNumber))
	for _, text := range []string{
		commitWith(`"ep":`+most+`,"at":`+most+`,"trm":`+most, `"rc":{"ev":"e","o":"handled","ln":`+most+`,"pos":`+most+`,"rk":`+huge+`}`),
		commitWith(`"cur":{"f":`+most+`,"hs":"1+1048575"}`, ""),
		commitWith("", `"ltr":{"id":"e","st":"add","nb":253402300799999,"sl":4294967296}`),
		commitWith("", `"snd":[{"id":"s:1:1:0","to":"t","st":"add","pos":`+most+`},{"id":"chosen","to":"not a name","st":"","pos":1}]`),
	} {
		if err := commitError([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestBounds_OfAnnouncementsAndLeases(t *testing.T) {
	for field, m := range map[string]Member{ // any order: each is independent
		"id": {ID: "a.b"}, "beat": {ID: "w", Beat: MaxNumber + 1}, "weight": {ID: "w", Weight: 1e300}, "holds": {ID: "w", Holds: []int{-1}},
		"wants": {ID: "w", Wants: []int{1 << 30}}, "done": {ID: "w", Done: make([]uint64, maxPartitions+1)},
		"full": {ID: "w", Full: []FullLane{{Partition: 1 << 30}}}, "host": {ID: "w", Host: strings.Repeat("x", maxShort+1)},
	} {
		if bound, is := errors.AsType[*BoundError](m.Check()); !is || bound.Field != field {
			t.Errorf("%s: %v", field, m.Check())
		}
	}
	if err := (&Member{ID: "w", Weight: 2, Holds: []int{0, 1023}, Done: []uint64{MaxNumber}}).Check(); err != nil {
		t.Error(err)
	}
	long := Lease{Space: "s", Watcher: strings.Repeat("x", maxShort+1)}
	if bound, is := errors.AsType[*BoundError](long.Check()); !is || bound.Field != "watcher" {
		t.Error(long.Check())
	}
	if err := (&Lease{Space: "s", Doc: "d", Watcher: "w", TTL: LeaseTTL}).Check(); err != nil {
		t.Error(err)
	}
}
