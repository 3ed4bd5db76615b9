package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/settlehq/settle/internal/starter"
)

// initCmd is `settle init`.
type initCmd struct {
	Star initStarCmd `cmd:"" help:"Create a program in Starlark: a door that locks itself, with tests."`
	Go   initGoCmd   `cmd:"" help:"Create the same program in Go: a module with tests and a main that runs it."`

	Compose initComposeCmd `cmd:"" help:"Create the files of a fleet for docker compose: three servers, three workers, two coordinators."`
}

// initStarCmd is `settle init star`.
type initStarCmd struct {
	Dir string `arg:"" help:"An empty directory, or a new one."`
}

// initGoCmd is `settle init go`.
type initGoCmd struct {
	Dir      string `arg:"" help:"An empty directory, or a new one."`
	Module   string `help:"The path of the module. Default: derived from the name of the directory." placeholder:"PATH"`
	Checkout string `help:"Build with the settle of this checkout. Default: the checkout of this command." type:"existingdir" placeholder:"DIR"`
}

// initComposeCmd is `settle init compose`.
type initComposeCmd struct {
	Dir      string `arg:"" help:"An empty directory, or a new one."`
	Checkout string `help:"Build the image from this checkout. Default: the checkout of this command." type:"existingdir" placeholder:"DIR"`
}

// Run writes the files of a fleet.
func (c *initComposeCmd) Run(io streams) error {
	of, err := originOf(c.Checkout)
	if err != nil {
		return err
	}
	files, err := starter.Compose(c.Dir, of)
	if err != nil {
		return usageIfPlace(err)
	}
	wrote(io, c.Dir, files, "docker compose up -d --build", "docker compose run --rm settle doctor")
	fmt.Fprintf(io.out, "It builds the image from the settle in %s. The passwords are in .env.\n", of.Checkout)
	return nil
}

// originOf returns a checkout as the origin of what is created, or that of this command.
func originOf(checkout string) (starter.Origin, error) {
	if checkout != "" {
		return starter.Origin{Checkout: checkout}, nil
	}
	return starter.Built(version)
}

// Run writes a program in Starlark.
func (c *initStarCmd) Run(io streams) error {
	files, err := starter.Star(c.Dir)
	if err != nil {
		return usageIfPlace(err)
	}
	wrote(io, c.Dir, files, "settle test", "settle dev")
	return nil
}

// Run writes a program in Go.
func (c *initGoCmd) Run(io streams) error {
	of, err := originOf(c.Checkout)
	if err != nil {
		return err
	}
	files, err := starter.Go(c.Dir, c.Module, of)
	if err != nil {
		return usageIfPlace(err)
	}
	next := []string{"go test ./...", "settle dev"}
	if of.Checkout == "" {
		next = append([]string{"go mod tidy"}, next...) // which fetches what is needed
	}
	wrote(io, c.Dir, files, next...)
	if of.Checkout != "" {
		fmt.Fprintf(io.out, "It builds with the settle in %s (the replace line of go.mod).\n", of.Checkout)
	}
	return nil
}

// usageIfPlace turns an error about a directory or a module into a usage error.
func usageIfPlace(err error) error {
	if errors.Is(err, starter.ErrNotEmpty) || errors.Is(err, starter.ErrModule) {
		return usage(err)
	}
	return err
}

// wrote prints what was written, and the next steps.
func wrote(io streams, dir string, files []string, next ...string) {
	fmt.Fprintf(io.out, "wrote %s: %s\n", filepath.Clean(dir), strings.Join(files, ", "))
	fmt.Fprintln(io.out, "Next:")
	if filepath.Clean(dir) != "." {
		next = append([]string{"cd " + quoted(dir)}, next...)
	}
	for _, command := range next {
		fmt.Fprintln(io.out, "  "+command)
	}
}

// quoted quotes a word for a shell.
func quoted(word string) string {
	if strings.ContainsFunc(word, func(r rune) bool {
		return !strings.ContainsRune("-_./~+:@%", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return word
}
