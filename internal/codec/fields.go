package codec

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

// field is a field of a struct, or of one embedded in it, that is a key of its object.
type field struct {
	name   string
	tagged bool // the name is in the tag
	index  []int
	typ    reflect.Type

	omitzero, omitempty bool
	asString            bool
}

// layout is the structure of a struct as an object.
type layout struct {
	fields []field // sorted by name
	// odd is set if there are tags or embedded pointers that are left to the JSON package.
	odd bool
	// refused is why the struct cannot be part of a document, or nil.
	refused error
}

// tier is a struct whose fields are collected: the type itself, or one embedded in it.
type tier struct {
	typ   reflect.Type
	index []int // the path to it
}

// layoutOf lists the fields of a struct. Conflicting names are resolved by the rules of Go: the
// field at the least depth, among those the one whose tag has the name, and none if there are still
// several.
func layoutOf(t reflect.Type) layout {
	var l layout
	var all []field
	seen := map[reflect.Type]bool{t: true}
	for queue := []tier{{typ: t}}; len(queue) > 0; queue = queue[1:] {
		fields, embedded := l.fieldsOf(queue[0])
		all = append(all, fields...)
		for _, e := range embedded {
			if seen[e.typ] {
				l.odd = true
				continue
			}
			seen[e.typ] = true
			queue = append(queue, e)
		}
	}
	l.fields = dominant(all)
	return l
}

// fieldsOf returns the fields of one tier, and the embedded structs whose fields are promoted.
func (l *layout) fieldsOf(in tier) (fields []field, embedded []tier) {
	for i := range in.typ.NumField() {
		f, inline, ok := l.read(in.typ.Field(i))
		if !ok {
			continue
		}
		f.index = append(slices.Clone(in.index), i)
		switch {
		case !inline:
			fields = append(fields, f)
		case f.typ.Kind() == reflect.Struct:
			embedded = append(embedded, tier{f.typ, f.index})
		case f.typ.Kind() == reflect.Pointer && f.typ.Elem().Kind() == reflect.Struct:
			l.odd = true
			embedded = append(embedded, tier{f.typ.Elem(), f.index})
		default:
			l.odd = true
		}
	}
	return fields, embedded
}

// read returns the field described by a tag, whether its own fields are promoted, and whether it is
// encoded at all.
func (l *layout) read(sf reflect.StructField) (f field, inline, ok bool) {
	tag := sf.Tag.Get("json")
	if tag == "-" || !sf.IsExported() && !sf.Anonymous {
		return field{}, false, false
	}
	name, options, _ := strings.Cut(tag, ",")
	f = field{name: cmp.Or(name, sf.Name), tagged: name != "", typ: sf.Type}
	if strings.ContainsAny(name, "\\'\"`") {
		l.odd = true
	}
	if !sf.IsExported() && f.tagged { // the JSON package panics when setting it to null
		l.refused = at(name, problem(fmt.Sprintf("the embedded %s is not exported and cannot have a name; give the type a capital letter, or remove the name", sf.Name)))
	}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "":
		case "omitzero":
			f.omitzero = true
		case "omitempty":
			f.omitempty = true
		case "string":
			f.asString, l.odd = true, true
		default:
			l.odd = true
		}
	}
	return f, sf.Anonymous && !f.tagged, true
}

// dominant keeps of the fields of one name the one that wins it, sorted by name.
func dominant(all []field) []field {
	slices.SortStableFunc(all, func(a, b field) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(len(a.index), len(b.index)), untaggedLast(a, b))
	})
	kept := all[:0:0]
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].name == all[0].name {
			n++
		}
		if n == 1 || len(all[0].index) != len(all[1].index) || all[0].tagged != all[1].tagged {
			kept = append(kept, all[0])
		}
		all = all[n:]
	}
	return kept
}

func untaggedLast(a, b field) int {
	switch {
	case a.tagged == b.tagged:
		return 0
	case a.tagged:
		return -1
	}
	return 1
}

// probe returns the JSON package's error about a type, which it reports before it reads any value.
func probe(t reflect.Type) error {
	err := json.Unmarshal([]byte("{}"), reflect.New(t).Interface())
	if err != nil {
		return problem(fmt.Sprintf("%s cannot be part of a document: %s", t, inText(err)))
	}
	return nil
}
