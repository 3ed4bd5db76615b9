package cookbook

import (
	"strings"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/upgrade"
)

// Profile has first and last names since version 2.
type Profile struct {
	First string `json:"first"`
	Last  string `json:"last"`
}

// profileV1 is the form of version 1.
type profileV1 struct {
	Name string `json:"name"`
}

func splitName(old profileV1) (Profile, error) {
	first, last, _ := strings.Cut(old.Name, " ")
	return Profile{First: first, Last: last}, nil
}

var (
	profile  = settle.NewCell[Profile]("profile").Version(2, upgrade.From(1, splitName))
	greeting = settle.NewDerived[string]("greeting")
	migrate  = settle.NewTrigger("migrate")
)

func profiles() *settle.Program {
	p := settle.NewProgram("profiles")
	greeting.Compute(p, func(v *settle.View) (string, error) {
		return "Hello " + profile.Get(v).First, nil // both forms are read
	})
	migrate.Handle(p, func(tx *settle.Tx) error {
		if stored, ok := profile.Lookup(tx); ok {
			profile.Set(tx, stored)
		}
		return nil
	})
	return p
}
