package model

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestKeysObject_IsTheObjectOfItsFields(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(genKey(), 0, 12, func(s string) string { return s }).Draw(t, "names")
		keys, err := KeysOf(slices.Clone(names))
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(names)
		fields := make([]Field, len(names))
		for i, name := range names {
			fields[i] = Field{name, rapid.OneOf(genValue(2), rapid.Just(Value{})).Draw(t, "value")}
		}
		got, err := keys.Object(func(i int) (Value, error) { return fields[i].Value, nil })
		if err != nil || !Equal(got, Object(fields...)) {
			t.Fatalf("%v: got %s, %v", fields, got, err)
		}
		wellFormed(t, got)
	})
}

func TestArrayFunc_IsTheArrayOfItsElements(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		elements := rapid.SliceOfN(rapid.OneOf(genValue(2), rapid.Just(Value{})), 0, 5).Draw(t, "elements")
		got, err := ArrayFunc(len(elements), func(i int) (Value, error) { return elements[i], nil })
		if err != nil || !Equal(got, Array(elements...)) {
			t.Fatalf("%v: got %s, %v", elements, got, err)
		}
		wellFormed(t, got)
	})
}

func TestKeysObject_ObjectsShareTheirKeys(t *testing.T) {
	keys, _ := KeysOf([]string{"b", "a"})
	number := func(i int) (Value, error) { return Int(int64(i)), nil }
	v, _ := keys.Object(number)
	w, _ := keys.Object(number)
	if a, _ := v.members(); &a[0] != &keys.sorted[0] {
		t.Error("an object does not share its keys")
	}
	if !Equal(v, w) {
		t.Errorf("%s is not %s", v, w)
	}
	if n := testing.AllocsPerRun(100, func() { sinkValue, _ = keys.Object(number) }); n != 1 {
		t.Errorf("an object of known keys costs %v allocations, not 1", n)
	}
}

func TestBuild_Refuses(t *testing.T) {
	if _, err := KeysOf([]string{"a", "b", "a"}); err == nil {
		t.Error("a duplicate key is accepted")
	}
	if _, err := KeysOf([]string{"\xff"}); !errors.Is(err, errUTF8) {
		t.Errorf("invalid UTF-8: %v", err)
	}
	deep := Null()
	for range MaxDepth {
		deep = Array(deep)
	}
	keys, _ := KeysOf([]string{"a"})
	fails := errors.New("no")
	for name, f := range map[string]func(func(int) (Value, error)) (Value, error){
		"object": keys.Object,
		"array":  func(f func(int) (Value, error)) (Value, error) { return ArrayFunc(1, f) },
	} {
		if _, err := f(func(int) (Value, error) { return deep, nil }); err == nil {
			t.Errorf("%s: may be nested deeper than MaxDepth", name)
		}
		if _, err := f(func(int) (Value, error) { return Value{}, fails }); !errors.Is(err, fails) {
			t.Errorf("%s: the error of a child became %v", name, err)
		}
	}
}
