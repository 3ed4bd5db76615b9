package bus

import (
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"github.com/settlehq/settle/model"
)

// SaveContext writes a nats context, over one of that name, and returns its file: from then on
// `nats --context NAME` and Config.Context reach the server. It does not select the context.
func SaveContext(name, url, description string) (file string, err error) {
	if err := model.CheckName("context", name); err != nil {
		return "", err
	}
	home, err := os.UserHomeDir()
	config := cmp.Or(os.Getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config"))
	if err != nil && os.Getenv("XDG_CONFIG_HOME") == "" {
		return "", err
	}
	text, err := json.MarshalIndent(map[string]string{"url": url, "description": description}, "", "  ")
	if err != nil {
		return "", err
	}
	dir := filepath.Join(config, "nats", "context")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	file = filepath.Join(dir, name+".json")
	return file, os.WriteFile(file, append(text, '\n'), 0o600)
}

// RemoveStore removes the data of an embedded server, for good. It fails if a server uses
// them, or if there are none.
func RemoveStore(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "settle.lock")); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return os.ErrNotExist
		}
		return err
	}
	lock, err := lockDir(dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	return os.RemoveAll(dir)
}
