package starter

import (
	"bytes"
	"crypto/rand"
	"io/fs"
	"path"
	"regexp"
	"strconv"

	"github.com/settlehq/settle/deploy"
)

var (
	// passwordLine is a line of example.env with a password to be changed, introLine that of compose.yaml which asks for it.
	passwordLine = regexp.MustCompile(`(?m)^([A-Z_]+_PASSWORD)=.*$`)
	introLine    = regexp.MustCompile(`(?m)^#   cp example\.env .*\n`)
)

// Compose writes a composition of containers into a directory that is empty or does not exist: three NATS servers, three
// workers, two coordinators, with passwords of their own. The image is built from a checkout. It returns the names of the
// files.
func Compose(dir string, of Origin) ([]string, error) {
	if of.Checkout == "" {
		return nil, ErrNoOrigin
	}
	if _, err := readMod(of.Checkout); err != nil {
		return nil, err
	}
	composition, err := fs.ReadFile(deploy.Files, "compose/compose.yaml")
	if err != nil {
		return nil, err
	}
	composition = introLine.ReplaceAll(composition, nil)
	composition = bytes.ReplaceAll(composition, []byte("see ../README.md"), []byte("see deploy/README.md of its checkout"))
	composition = bytes.ReplaceAll(composition, []byte("../nats:"), []byte("./nats:"))
	composition = bytes.ReplaceAll(composition, []byte("context: ../..\n"), []byte("context: "+strconv.Quote(of.Checkout)+"\n"))
	env, err := fs.ReadFile(deploy.Files, "compose/example.env")
	if err != nil {
		return nil, err
	}
	env = passwordLine.ReplaceAllFunc(env[bytes.IndexByte(env, '\n')+1:], func(line []byte) []byte {
		name, _, _ := bytes.Cut(line, []byte("="))
		return []byte(string(name) + "=" + rand.Text()) // line is part of what is searched
	})
	files := []file{{"compose.yaml", composition}, {".env", env}}
	servers, err := fs.ReadDir(deploy.Files, "nats")
	if err != nil {
		return nil, err
	}
	for _, e := range servers {
		text, err := fs.ReadFile(deploy.Files, path.Join("nats", e.Name()))
		if err != nil {
			return nil, err
		}
		files = append(files, file{path.Join("nats", e.Name()), text})
	}
	return write(dir, files)
}
