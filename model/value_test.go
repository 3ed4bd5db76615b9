package model

import (
	"math"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

func TestValue_IsThreeWords(t *testing.T) {
	if n := unsafe.Sizeof(Value{}); n != 24 {
		t.Errorf("a Value takes %d bytes, want 24", n)
	}
}

func TestValue_ZeroIsAbsentAndNotNull(t *testing.T) {
	var v Value
	if !v.IsAbsent() || !v.IsZero() || v.IsNull() || v.Kind() != KindAbsent {
		t.Errorf("the zero Value is %s", v.Kind())
	}
	if null := Null(); null.IsAbsent() || null.IsZero() || !null.IsNull() {
		t.Errorf("Null is %s", null.Kind())
	}
	if Equal(v, Null()) {
		t.Error("absent equals null")
	}
	if v.String() != "absent" || string(v.AppendJSON(nil)) != "null" {
		t.Errorf("absent prints as %s, marshals as %s", v, v.AppendJSON(nil))
	}
}

// A number has one representation, so that a program cannot see whether a value has been through the log.
func TestValue_NumbersAreCanonical(t *testing.T) {
	for _, c := range []struct {
		v    Value
		kind Kind
		text string
	}{
		{Int(1), KindInt, "1"},
		{Float(1), KindInt, "1"},
		{Float(math.Copysign(0, -1)), KindInt, "0"},
		{parse(t, "-0"), KindInt, "0"},
		{parse(t, "-0.0"), KindInt, "0"},
		{parse(t, "1.0"), KindInt, "1"},
		{parse(t, "1e2"), KindInt, "100"},
		{parse(t, "9007199254740993"), KindInt, "9007199254740993"},
		{parse(t, "9223372036854775807"), KindInt, "9223372036854775807"},
		{parse(t, "-9223372036854775808"), KindInt, "-9223372036854775808"},
		{parse(t, "9223372036854775808"), KindFloat, "9223372036854776000"},
		{Float(1 << 60), KindInt, "1152921504606846976"},
		{Float(-1 << 63), KindInt, "-9223372036854775808"},
		{Float(1 << 63), KindFloat, "9223372036854776000"},
		{Float(0.1), KindFloat, "0.1"},
		{Float(1e21), KindFloat, "1e+21"},
		{Float(1e-7), KindFloat, "1e-7"},
		{Float(math.NaN()), KindNull, "null"},
		{Float(math.Inf(-1)), KindNull, "null"},
	} {
		if c.v.Kind() != c.kind || c.v.String() != c.text {
			t.Errorf("got %s %s, want %s %s", c.v.Kind(), c.v, c.kind, c.text)
		}
	}
}

func TestValue_AccessorsAnswerOnlyTheirKind(t *testing.T) {
	for _, v := range []Value{{}, Null(), Bool(true), Int(7), Float(0.5), String("s"), Array(Int(1)), Object(F("k", 1))} {
		k := v.Kind()
		if b, ok := v.AsBool(); ok != (k == KindBool) || b != ok {
			t.Errorf("%s: AsBool = %v, %v", v, b, ok)
		}
		if i, ok := v.AsInt(); ok != (k == KindInt) || ok && i != 7 {
			t.Errorf("%s: AsInt = %v, %v", v, i, ok)
		}
		if f, ok := v.AsFloat(); ok != (k == KindInt || k == KindFloat) || ok && f != 7 && f != 0.5 {
			t.Errorf("%s: AsFloat = %v, %v", v, f, ok)
		}
		if s, ok := v.AsString(); ok != (k == KindString) || ok && s != "s" {
			t.Errorf("%s: AsString = %v, %v", v, s, ok)
		}
		if n := v.Len(); n == 1 != (k == KindArray || k == KindObject) {
			t.Errorf("%s: Len = %d", v, n)
		}
		if e := v.Index(0); e.IsAbsent() == (k == KindArray) {
			t.Errorf("%s: Index(0) = %s", v, e)
		}
		if x := v.Get("k"); x.IsAbsent() == (k == KindObject) {
			t.Errorf("%s: Get = %s", v, x)
		}
		if keys := v.Keys(); len(keys) == 1 != (k == KindObject) {
			t.Errorf("%s: Keys = %q", v, keys)
		}
	}
	if a := Array(Int(1)); !a.Index(-1).IsAbsent() || !a.Index(1).IsAbsent() {
		t.Error("an index outside the array yields a value")
	}
	if o := Object(F("k", 1)); !o.Get("").IsAbsent() || !Object().Get("k").IsAbsent() {
		t.Error("a missing key yields a value")
	}
}

func TestObject_NormalizesItsFields(t *testing.T) {
	fields := []Field{F("b", 1), F("a", 2), F("b", 3), {"c", Value{}}, F("d", 4), {"d", Value{}}, F("\xff", 5)}
	before := slices.Clone(fields)
	if got, want := Object(fields...).String(), `{"a":2,"b":3,"`+"\uFFFD"+`":5}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for i := range fields {
		if fields[i].Key != before[i].Key || !Equal(fields[i].Value, before[i].Value) {
			t.Fatal("Object changed its argument")
		}
	}
}

func TestArray_OwnsItsElements(t *testing.T) {
	elements := []Value{Int(1), {}}
	a := Array(elements...)
	elements[0] = Int(2)
	if got := a.String(); got != "[1,null]" {
		t.Errorf("got %s", got)
	}
}

func TestKeys_BelongToTheCaller(t *testing.T) {
	o := Object(F("a", 1), F("b", 2))
	o.Keys()[0] = "z"
	if got := o.String(); got != `{"a":1,"b":2}` {
		t.Errorf("got %s", got)
	}
}

func TestIterators_Stop(t *testing.T) {
	for k := range Object(F("a", 1), F("b", 2)).All() {
		if k != "a" {
			t.Errorf("continued with %q", k)
		}
		break
	}
	for e := range Array(Int(1), Int(2)).Elements() {
		if !Equal(e, Int(1)) {
			t.Errorf("continued with %s", e)
		}
		break
	}
}

func TestString_RepairsInvalidUTF8(t *testing.T) {
	if s, _ := String("a\xffb").AsString(); s != "a\uFFFDb" {
		t.Errorf("got %q", s)
	}
}

func TestEqual_AgreesWithOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := genValue(3).Draw(t, "a"), genValue(3).Draw(t, "b")
		if derived := rapid.IntRange(0, 2).Draw(t, "derived"); derived > 0 {
			b = a
			if derived == 2 {
				b = parse2(t, a) // equal, with nothing shared
			}
			if x, err := b.Set(genPath(a).Draw(t, "at"), genScalar().Draw(t, "x")); err == nil {
				b = x
			}
		}
		want := oracleEqual(oracleOf(a), oracleOf(b))
		if Equal(a, b) != want || Equal(b, a) != want {
			t.Fatalf("Equal(%s, %s) = %v", a, b, !want)
		}
		if (a.String() == b.String()) != want {
			t.Fatalf("texts %s and %s, but equality is %v", a, b, want)
		}
	})
}

// parse2 returns v rebuilt from its text.
func parse2(t *rapid.T, v Value) Value {
	x, err := ParseValue(v.AppendJSON(nil))
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestHeight_SaturatesAndNeverPanics(t *testing.T) {
	v := Null()
	for range 2*maxHeight + 1 {
		v = Array(v)
	}
	if v.height() != maxHeight {
		t.Errorf("height is %d", v.height())
	}
	if _, err := v.MarshalJSON(); err == nil || !strings.Contains(err.Error(), "1000 is the limit") {
		t.Errorf("marshalling gave %v", err)
	}
}
