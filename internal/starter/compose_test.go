package starter

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The composition refers to files that are written, builds from the checkout, names every variable that it needs, and no two passwords are the
// same. (Package deploy runs the same services as processes.)
func TestCompose_IsComplete(t *testing.T) {
	t.Parallel()
	of, err := Built("dev")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "fleet")
	files, err := Compose(dir, of)
	if err != nil || !slices.Contains(files, "compose.yaml") || !slices.Contains(files, ".env") || !slices.Contains(files, "nats/cluster.conf") {
		t.Fatalf("wrote %v, %v", files, err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "compose.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"nats-1", "nats-2", "nats-3", "provision", "worker-1", "worker-2", "worker-3", "coordinator-1", "coordinator-2", "settle"} {
		if !strings.Contains(string(text), "\n  "+name+":\n") {
			t.Errorf("there is no service %s", name)
		}
	}
	if n := strings.Count(string(text), "- ./nats:/etc/nats:ro\n"); n != 3 {
		t.Errorf("%d services mount the files of the servers, want 3", n)
	}
	m := regexp.MustCompile(`context: "(.*)"\n    dockerfile: (.*)\n`).FindSubmatch(text)
	if m == nil || string(m[1]) != of.Checkout {
		t.Fatalf("the image is built from %q", m)
	}
	if _, err := os.Stat(filepath.Join(of.Checkout, string(m[2]))); err != nil {
		t.Error(err)
	}
	env, err := os.ReadFile(filepath.Join(dir, ".env"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`\$\{([A-Z_]+)`).FindAllStringSubmatch(string(text), -1) {
		if !regexp.MustCompile(`(?m)^` + m[1] + `=.`).Match(env) {
			t.Errorf(".env has no %s, which compose.yaml uses", m[1])
		}
	}
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^[A-Z_]+_PASSWORD=(.*)$`).FindAllStringSubmatch(string(env), -1) {
		if len(m[1]) < 20 || seen[m[1]] || strings.Contains(m[1], "change") {
			t.Errorf("a password is %q", m[1])
		}
		seen[m[1]] = true
	}
	if len(seen) < 9 || strings.Contains(string(text), "../") {
		t.Errorf("%d passwords; the composition:\n%s", len(seen), text)
	}
	if info, err := os.Stat(filepath.Join(dir, ".env")); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("the passwords can be read by others: %v, %v", info.Mode(), err)
	}
}
