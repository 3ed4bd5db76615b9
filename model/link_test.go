package model

import (
	stdjson "encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"
)

func TestLink_Form(t *testing.T) {
	for _, c := range []struct {
		l          Link
		text, says string
	}{
		{Link{Doc: "d"}, `{"$link":{"doc":"d"}}`, "-> d"},
		{Link{Doc: "d", Path: Path{}}, `{"$link":{"doc":"d"}}`, "-> d"},
		{Link{Space: "s", Doc: "d"}, `{"$link":{"doc":"d","space":"s"}}`, "-> @s/d"},
		{Link{Doc: "d", Path: Path{"a", "0"}}, `{"$link":{"doc":"d","path":["a","0"]}}`, "-> d/a/0"},
		{Link{"s", "d", Path{"a", "b"}}, `{"$link":{"doc":"d","path":["a","b"],"space":"s"}}`, "-> @s/d/a/b"},
		{Link{"s", "d", Path{"", "a/b~"}}, `{"$link":{"doc":"d","path":["","a/b~"],"space":"s"}}`, "-> @s/d//a~1b~0"},
	} {
		if got := c.l.Value().String(); got != c.text {
			t.Errorf("got %s, want %s", got, c.text)
		}
		if got := c.l.String(); got != c.says {
			t.Errorf("got %s, want %s", got, c.says)
		}
	}
}

func TestAsLink_IsStrict(t *testing.T) {
	long := strings.Repeat("x", MaxNameLen)
	for _, text := range []string{
		`{"$link":{"doc":"d"}}`,
		`{"$link":{"doc":"d","path":[]}}`,
		`{"$link":{"path":["","a/b"],"space":"s","doc":"d"}}`,
		`{"$link":{"doc":"` + long + `","space":"` + long + `"}}`,
	} {
		v := parse(t, text)
		if _, ok := v.AsLink(); !ok || !v.IsLink() {
			t.Errorf("%s is no link", text)
		}
	}
	for _, text := range []string{
		`null`, `true`, `1`, `0.5`, `"$link"`, `[]`, `{}`, `["$link",{"doc":"d"}]`, `[{"$link":{"doc":"d"}}]`,
		`{"link":{"doc":"d"}}`, `{"$LINK":{"doc":"d"}}`, `{"$link":{"doc":"d"},"a":1}`, `{"$link":{"$link":{"doc":"d"}}}`,
		`{"$link":null}`, `{"$link":"d"}`, `{"$link":["d"]}`, `{"$link":{}}`,
		`{"$link":{"space":"s"}}`, `{"$link":{"path":["a"]}}`, `{"$link":{"doc":"d","x":1}}`, `{"$link":{"doc":"d","Path":[]}}`,
		`{"$link":{"doc":""}}`, `{"$link":{"doc":null}}`, `{"$link":{"doc":1}}`, `{"$link":{"doc":"a/b"}}`,
		`{"$link":{"doc":"` + long + `x"}}`, `{"$link":{"doc":"é"}}`,
		`{"$link":{"doc":"d","space":""}}`, `{"$link":{"doc":"d","space":null}}`, `{"$link":{"doc":"d","space":"a.b"}}`,
		`{"$link":{"doc":"d","path":null}}`, `{"$link":{"doc":"d","path":"/a"}}`, `{"$link":{"doc":"d","path":{}}}`,
		`{"$link":{"doc":"d","path":[0]}}`, `{"$link":{"doc":"d","path":["a",null]}}`,
	} {
		v := parse(t, text)
		if l, ok := v.AsLink(); ok || v.IsLink() {
			t.Errorf("%s was accepted as the link %s", text, l)
		}
	}
	if (Value{}).IsLink() {
		t.Error("absent was accepted as a link")
	}
}

// A link with invalid names must not turn into one that leads somewhere else.
func TestLink_OfInvalidNamesIsPlainData(t *testing.T) {
	for _, l := range []Link{{}, {Doc: "a/b"}, {Space: "\xff", Doc: "d"}, {Space: "s"}} {
		if v := l.Value(); v.IsLink() {
			t.Errorf("%#v became the link %s", l, v)
		}
		if text, err := json.Marshal(l); err == nil {
			t.Errorf("%#v was written as %s", l, text)
		}
	}
}

func TestLink_InStructs(t *testing.T) {
	type order struct {
		Customer Link  `json:"customer"`
		Parent   *Link `json:"parent"`
		Former   Link  `json:"former,omitzero"`
	}
	in := order{Customer: Link{Space: "s", Doc: "d", Path: Path{"a"}}}
	v, err := Of(in)
	const want = `{"customer":{"$link":{"doc":"d","path":["a"],"space":"s"}},"parent":null}`
	if err != nil || v.String() != want {
		t.Fatalf("got %s, %v", v, err)
	}
	var out order
	if err := v.Decode(&out); err != nil || !sameLink(out.Customer, in.Customer) || out.Parent != nil {
		t.Errorf("got %+v, %v", out, err)
	}
	for _, text := range []string{`null`, `"d"`, `{"$link":{}}`, `{"$link":{"doc":"d","doc":"d"}}`} {
		kept := Link{Doc: "kept"}
		if err := kept.UnmarshalJSON([]byte(text)); err == nil || kept.Doc != "kept" {
			t.Errorf("%s was read as %s, %v", text, kept, err)
		}
	}
}

func sameLink(a, b Link) bool {
	return a.Space == b.Space && a.Doc == b.Doc && slices.Equal(a.Path, b.Path)
}

func genLink() *rapid.Generator[Link] {
	return rapid.Custom(func(t *rapid.T) Link {
		name := rapid.OneOf(rapid.SampledFrom([]string{"d", "e"}), genName())
		return Link{
			Space: rapid.OneOf(rapid.Just(""), name).Draw(t, "space"),
			Doc:   name.Draw(t, "doc"),
			Path:  rapid.SliceOfN(genKey(), 0, 3).Draw(t, "path"),
		}
	})
}

// genLinked makes links, objects that are almost links, values that contain links, and others.
func genLinked() *rapid.Generator[Value] {
	link := rapid.Map(genLink(), Link.Value)
	return rapid.OneOf(link, genNearLink(), genValue(2), rapid.Custom(func(t *rapid.T) Value {
		v := genObject(2).Draw(t, "around")
		w, err := v.Set(genPath(v).Draw(t, "at"), link.Draw(t, "link"))
		if err != nil {
			return v
		}
		return w
	}))
}

// genNearLink makes links with one or two parts exchanged or added; some are valid.
func genNearLink() *rapid.Generator[Value] {
	name := rapid.OneOf(
		rapid.SampledFrom([]Value{String("d"), String(""), String("a/b"), String(strings.Repeat("x", MaxNameLen+1)), Null(), {}}),
		genScalar())
	path := rapid.OneOf(
		rapid.SampledFrom([]Value{Array(), Array(String("a"), String("")), Array(String("a"), Int(0)), Object(), String("/a"), {}}),
		genValue(1))
	return rapid.Custom(func(t *rapid.T) Value {
		v := genLink().Draw(t, "link").Value()
		for n := rapid.IntRange(1, 2).Draw(t, "changes"); n > 0; n-- {
			switch key := genKey().Draw(t, "key"); rapid.IntRange(0, 5).Draw(t, "change") {
			case 0:
				v, _ = v.Set(Path{"$link", "doc"}, name.Draw(t, "doc"))
			case 1:
				v, _ = v.Set(Path{"$link", "space"}, name.Draw(t, "space"))
			case 2:
				v, _ = v.Set(Path{"$link", "path"}, path.Draw(t, "path"))
			case 3:
				v, _ = v.Set(Path{"$link", key}, Int(1))
			case 4:
				v, _ = v.Set(Path{key}, Int(1))
			case 5:
				return Object(Field{key, v.Get("$link")})
			}
		}
		return v
	})
}

var oracleName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// oracleLink is a naive AsLink.
func oracleLink(x any) (Link, bool) {
	outer, ok := x.(map[string]any)
	target, isMap := outer["$link"].(map[string]any)
	if !ok || !isMap || len(outer) != 1 {
		return Link{}, false
	}
	var l Link
	for k, x := range target {
		s, _ := x.(string)
		steps, isArray := x.([]any)
		switch {
		case k == "doc" && oracleName.MatchString(s):
			l.Doc = s
		case k == "space" && oracleName.MatchString(s):
			l.Space = s
		case k == "path" && isArray:
			for _, step := range steps {
				s, ok := step.(string)
				if !ok {
					return Link{}, false
				}
				l.Path = append(l.Path, s)
			}
		default:
			return Link{}, false
		}
	}
	if l.Doc == "" {
		return Link{}, false
	}
	return l, true
}

func TestAsLink_AgreesWithOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := genLinked().Draw(t, "v")
		l, ok := v.AsLink()
		want, wantOK := oracleLink(oracleTree(t, v))
		if ok != wantOK || v.IsLink() != ok || !sameLink(l, want) {
			t.Fatalf("%s: got %s, %v, want %s, %v", v, l, ok, want, wantOK)
		}
		if back := l.Value(); ok && !sameLink(mustLink(t, back), l) {
			t.Fatalf("%s came back as %s", v, back)
		}
	})
}

func mustLink(t rapid.TB, v Value) Link {
	l, ok := v.AsLink()
	if !ok {
		t.Fatalf("%s is no link", v)
	}
	return l
}

func TestLink_RoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := genLink().Draw(t, "l")
		v := l.Value()
		wellFormed(t, v)
		if got := mustLink(t, v); !sameLink(got, l) {
			t.Fatalf("%s came back as %s", l, got)
		}
		std, err := stdjson.MarshalIndent(l, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range [][]byte{v.AppendJSON(nil), backwards(v), std} {
			back, err := ParseValue(text)
			if err != nil || !Equal(back, v) || !sameLink(mustLink(t, back), l) {
				t.Fatalf("%s: %s came back as %s, %v", l, text, back, err)
			}
			var into Link
			if err := stdjson.Unmarshal(text, &into); err != nil || !sameLink(into, l) {
				t.Fatalf("%s: %s was read as %s, %v", l, text, into, err)
			}
		}
		if of, err := Of(l); err != nil || !Equal(of, v) {
			t.Fatalf("Of(%s) = %s, %v", l, of, err)
		}
	})
}
