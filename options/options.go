// Package options turns the options of Settle's configurations into flags and environment variables, so that
// a program of your own takes the same ones as the spaceworker command:
//
//	cfg := settle.WorkerConfig{ID: "w1", Programs: settle.Always(p)}
//	err := options.Bind(flag.CommandLine, &cfg)
//	flag.Parse()
//
// An option is a field with a help tag, of the configuration or of a struct in it. Its names follow from the
// name of the field: HistoryBytes is the flag --history-bytes and the variable SETTLE_HISTORY_BYTES. A name
// tag replaces the name of the flag, and the tag env:"-" omits the variable: bus.Connect reads NATS_URL
// itself. A flag takes precedence over the variable, and the variable over the value that the field has in
// Go; the value 0 stands for the default.
package options

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/settlehq/settle/internal/display"
)

// Option is one field of a configuration.
type Option struct {
	// Path is the field in Go, such as "Idle" or "Live.MaxGets"; names of embedded structs are left out.
	Path string
	// Flag is the name of the flag, such as "history-bytes"; Env is the name of the variable, such as
	// "SETTLE_HISTORY_BYTES", or "" for an option without one.
	Flag, Env string
	// Help describes the option in one sentence.
	Help string
	// Default is the text of the default, "" if it depends on something else.
	Default string
	// Value is the field.
	Value reflect.Value
}

// Of returns the options of a configuration, which is a pointer to a struct, in the order of their
// declaration.
func Of(cfg any) []Option {
	v := reflect.ValueOf(cfg).Elem()
	return collect(nil, v, zero(v.Type()), Option{})
}

// zero returns a value of a struct type with its defaults, if the type has a Fill method.
func zero(t reflect.Type) reflect.Value {
	v := reflect.New(t)
	if f, ok := v.Interface().(interface{ Fill() error }); ok {
		_ = f.Fill() // the zero value is valid
	}
	return v.Elem()
}

// collect appends the options of a struct. Their defaults are those of the innermost enclosing struct that
// has a Fill method.
func collect(all []Option, v, defaults reflect.Value, at Option) []Option {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		help, is := f.Tag.Lookup("help")
		switch {
		case is:
			o := Option{Path: at.Path + f.Name, Flag: at.Flag + cmp.Or(f.Tag.Get("name"), kebab(f.Name)), Help: help, Value: v.Field(i)}
			if f.Tag.Get("env") != "-" {
				o.Env = "SETTLE_" + strings.ToUpper(strings.ReplaceAll(o.Flag, "-", "_"))
			}
			if d := defaults.Field(i); !d.IsZero() {
				o.Default = text(d)
			}
			all = append(all, o)
		case f.Type.Kind() == reflect.Struct:
			inner := Option{Path: at.Path, Flag: at.Flag + f.Tag.Get("prefix")}
			own := defaults.Field(i)
			if !f.Anonymous {
				inner.Path += f.Name + "."
				own = zero(f.Type)
			}
			all = collect(all, v.Field(i), own, inner)
		}
	}
	return all
}

// kebab returns "member-ttl" for MemberTTL.
func kebab(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		begins := i > 0 && unicode.IsUpper(r) && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		if begins {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// text formats a value as it is written after a flag: "1m", not "1m0s".
func text(v reflect.Value) string {
	if d, ok := v.Interface().(time.Duration); ok {
		return display.Duration(d)
	}
	return fmt.Sprint(v.Interface())
}

// Set parses a text and sets the field.
func (o Option) Set(s string) error {
	switch p := o.Value.Addr().Interface().(type) {
	case *string:
		*p = s
	case *time.Duration:
		d, err := time.ParseDuration(s)
		if err != nil {
			return fmt.Errorf("%q is not a duration; write it as 500ms, 30s or 1h", s)
		}
		*p = d
	case *int:
		n, err := strconv.Atoi(s)
		if err != nil {
			return fmt.Errorf("%q is not a whole number", s)
		}
		*p = n
	case *int64:
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return fmt.Errorf("%q is not a whole number", s)
		}
		*p = n
	case *uint64:
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return fmt.Errorf("%q is not a whole number of 0 or more", s)
		}
		*p = n
	case *float64:
		x, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return fmt.Errorf("%q is not a number", s)
		}
		*p = x
	default:
		return fmt.Errorf("option %s is a %s, which has no text", o.Path, o.Value.Type())
	}
	return nil
}

// Bind sets the options whose variables are in the environment, and declares a flag for each option. cfg is a
// pointer to a configuration, such as a settle.WorkerConfig, a settle.Config, a bus.Config or an
// ordered.Config. The error names the first variable whose text is invalid.
func Bind(flags *flag.FlagSet, cfg any) error {
	for _, o := range Of(cfg) {
		if s, ok := os.LookupEnv(o.Env); ok && o.Env != "" {
			if err := o.Set(s); err != nil {
				return fmt.Errorf("environment variable %s: %w", o.Env, err)
			}
		}
		help := o.Help
		if o.Default != "" {
			help += " Default: " + o.Default + "."
		}
		if o.Env != "" {
			help += " Environment: " + o.Env + "."
		}
		flags.Func(o.Flag, help, o.Set)
	}
	return nil
}
