package bus

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/settlehq/settle/model"
)

// SaveContext writes a nats context, replacing one of that name, and returns its file: from then on
// `nats --context NAME` and Config.Context reach the server. It does not select the context.
func SaveContext(name, url, description string) (file string, err error) {
	if err := model.CheckName("context", name); err != nil {
		return "", err
	}
	dir, err := contextDir()
	if err != nil {
		return "", err
	}
	text, err := json.MarshalIndent(map[string]string{"url": url, "description": description}, "", "  ")
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	file = filepath.Join(dir, name+".json")
	return file, os.WriteFile(file, append(text, '\n'), 0o600)
}

// RemoveContext removes a nats context that SaveContext has written, if it still names the server.
func RemoveContext(name, url string) {
	dir, err := contextDir()
	if err != nil || model.CheckName("context", name) != nil || ContextURL(name) != url {
		return
	}
	_ = os.Remove(filepath.Join(dir, name+".json")) // one that stays names a server that does not answer
}

// ContextURL returns the server that a nats context names, "" for none.
func ContextURL(name string) string {
	dir, err := contextDir()
	if err != nil {
		return ""
	}
	text, err := os.ReadFile(filepath.Join(dir, filepath.Base(name)+".json"))
	var c struct {
		URL string `json:"url"`
	}
	if err != nil || json.Unmarshal(text, &c) != nil {
		return ""
	}
	return c.URL
}

// RemoveContexts removes the nats contexts that are exactly as SaveContext has written them with a description, and whose name and
// server a function accepts. Contexts with other members, which another program has written or edited, stay.
func RemoveContexts(description string, of func(name, url string) bool) {
	dir, err := contextDir()
	if err != nil {
		return
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return // dir has characters of patterns
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		var c map[string]any
		if err != nil || json.Unmarshal(text, &c) != nil || len(c) != 2 || c["description"] != description {
			continue
		}
		if url, is := c["url"].(string); is && of(strings.TrimSuffix(filepath.Base(file), ".json"), url) {
			_ = os.Remove(file) // one that stays names a server that does not answer
		}
	}
}

func contextDir() (string, error) {
	home, err := os.UserHomeDir()
	config := cmp.Or(os.Getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config"))
	if err != nil && os.Getenv("XDG_CONFIG_HOME") == "" {
		return "", err
	}
	return filepath.Join(config, "nats", "context"), nil
}
