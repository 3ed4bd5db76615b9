package cookbook

import (
	"strings"

	"github.com/settlehq/settle"
)

// Profile has first and last names since version 2. Name is the field of version 1.
type Profile struct {
	Name  string `json:"name,omitempty"`
	First string `json:"first"`
	Last  string `json:"last"`
}

// upgraded returns the profile in the form of version 2.
func (p Profile) upgraded() Profile {
	if p.Name != "" {
		p.First, p.Last, _ = strings.Cut(p.Name, " ")
		p.Name = ""
	}
	return p
}

var (
	profile  = settle.NewCell[Profile]("profile")
	greeting = settle.NewDerived[string]("greeting")
	migrate  = settle.NewTrigger("migrate")
)

func profiles() *settle.Program {
	p := settle.NewProgram("profiles")
	greeting.Compute(p, func(v *settle.View) (string, error) {
		return "Hello " + profile.Get(v).upgraded().First, nil // both forms are read
	})
	migrate.Handle(p, func(tx *settle.Tx) error {
		if stored, ok := profile.Lookup(tx); ok {
			profile.Set(tx, stored.upgraded()) // writing what is there already is no write
		}
		return nil
	})
	return p
}
