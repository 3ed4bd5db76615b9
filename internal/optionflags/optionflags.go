// Package optionflags gives the flags of the commands what package options says of the fields that
// they set: help, default and environment variable.
package optionflags

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/options"
)

// Of makes a parser describe the flags of a configuration that is a part of its grammar. cfg is a
// pointer to it. Each of its options must be a flag.
func Of(cfg any) kong.Option {
	return kong.PostBuild(func(k *kong.Kong) error {
		left := map[any]options.Option{}
		for _, o := range options.Of(cfg) {
			left[o.Value.Addr().Interface()] = o
		}
		err := eachFlag(k, func(f *kong.Flag) error {
			at := f.Target.Addr().Interface()
			o, ok := left[at]
			if !ok {
				return nil
			}
			delete(left, at)
			return describe(f, o)
		})
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("%d options of a %T have no flag", len(left), cfg)
		}
		return err
	})
}

// Text returns the text of an error as a command prints it: with its flag, where a library names the field of
// bus.Config that a program in Go sets.
func Text(err error) string {
	text := err.Error()
	if !strings.Contains(text, "bus.Config.") {
		return text
	}
	for _, o := range options.Of(&bus.Config{}) {
		text = regexp.MustCompile(`\bbus\.Config\.`+o.Path+`\b`).ReplaceAllString(text, "--"+o.Flag)
	}
	return text
}

// busTag is the tag of a flag that sets a field of bus.Config.
const busTag = "bus"

// OfBus makes a parser describe the flags that name a field of bus.Config in a tag:
//
//	Partitions int `bus:"Partitions"`
func OfBus() kong.Option {
	return kong.PostBuild(func(k *kong.Kong) error {
		all := map[string]options.Option{}
		for _, o := range options.Of(&bus.Config{}) {
			all[o.Path] = o
		}
		return eachFlag(k, func(f *kong.Flag) error {
			if !f.Tag.Has(busTag) {
				return nil
			}
			o, ok := all[f.Tag.Get(busTag)]
			if !ok {
				return fmt.Errorf("flag --%s: bus.Config has no option %s", f.Name, f.Tag.Get(busTag))
			}
			return describe(f, o)
		})
	})
}

// FillBus sets the fields of cfg that the flags of a command name in tags. flags is a pointer to the
// struct of the flags; those of embedded structs count as well.
func FillBus(cfg *bus.Config, flags any) {
	fillBus(reflect.ValueOf(cfg).Elem(), reflect.ValueOf(flags).Elem())
}

func fillBus(cfg, flags reflect.Value) {
	for i := range flags.NumField() {
		f := flags.Type().Field(i)
		if name, ok := f.Tag.Lookup(busTag); ok {
			cfg.FieldByName(name).Set(flags.Field(i))
		} else if f.Anonymous && f.Type.Kind() == reflect.Struct {
			fillBus(cfg, flags.Field(i))
		}
	}
}

func eachFlag(k *kong.Kong, do func(*kong.Flag) error) error {
	return kong.Visit(k.Model, func(n kong.Visitable, next kong.Next) error {
		if f, ok := n.(*kong.Flag); ok {
			if err := do(f); err != nil {
				return err
			}
		}
		return next(nil)
	})
}

// describe adds to a flag what an option says. A flag with a help of its own keeps that.
func describe(f *kong.Flag, o options.Option) error {
	if f.Name != o.Flag {
		return fmt.Errorf("the flag of %s is --%s, and --%s in package options", o.Path, f.Name, o.Flag)
	}
	if f.Help == "" {
		f.Help, f.OrigHelp = o.Help, o.Help
	}
	if o.Env != "" {
		f.Envs = []string{o.Env}
		f.Tag.Envs = f.Envs
	}
	if o.Default != "" {
		f.Default, f.HasDefault = o.Default, true
	}
	return nil
}
