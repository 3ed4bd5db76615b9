package console

import (
	"html/template"
	"strconv"
	"strings"

	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/model"
)

const (
	// maxMembers bounds what one level of a tree shows, and maxTree the bytes of a tree.
	maxMembers, maxTree = 50, 32 << 10
)

// tree is a value as a tree that can be unfolded: a scalar as it is, an object or a list in one line with its members below.
func tree(name string, v model.Value) template.HTML {
	var b strings.Builder
	growTree(&b, "t-"+name, "", v)
	return template.HTML(b.String()) //nolint:gosec // what is not ours is escaped
}

// branch reports whether a value has members.
func branch(v model.Value) bool {
	return (v.Kind() == model.KindObject || v.Kind() == model.KindArray) && v.Len() > 0
}

func growTree(b *strings.Builder, id, key string, v model.Value) {
	label := ""
	if key != "" {
		label = `<span class="key">` + template.HTMLEscapeString(key) + `</span> `
	}
	if !branch(v) {
		b.WriteString(`<span class="leaf">` + label + template.HTMLEscapeString(cut(v.String(), 300)) + `</span>`)
		return
	}
	b.WriteString(`<details data-keep="` + template.HTMLEscapeString(id) + `"><summary>` + label + `<span class="fold">` + template.HTMLEscapeString(cut(v.String(), maxInline)) + `</span></summary><ul>`)
	n, rest := 0, 0
	each := func(key string, x model.Value) {
		if n >= maxMembers || b.Len() > maxTree {
			rest++
			return
		}
		n++
		b.WriteString("<li>")
		growTree(b, id+"/"+key, key, x)
		b.WriteString("</li>")
	}
	if v.Kind() == model.KindObject {
		for k, x := range v.All() {
			each(k, x)
		}
	} else {
		i := 0
		for x := range v.Elements() {
			each(strconv.Itoa(i), x)
			i++
		}
	}
	if rest > 0 {
		b.WriteString(`<li class="none">and ` + display.Grouped(rest) + ` more</li>`)
	}
	b.WriteString("</ul></details>")
}
