package deploy_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/provision"
	"github.com/settlehq/settle/bus/roles"
)

// find returns the first group of a pattern, which must occur.
func find(t *testing.T, in, text, pattern string) string {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("%s has no %s", in, pattern)
	}
	return m[1]
}

func TestVersionsAreThoseOfGoMod(t *testing.T) {
	t.Parallel()
	mod := read(t, "../go.mod")
	server := find(t, "go.mod", mod, `nats-server/v2 v(\S+)`)
	if got := find(t, "compose.yaml", read(t, "compose/compose.yaml"), `image: nats:([0-9.]+)`); got != server {
		t.Errorf("compose.yaml runs nats-server %s, go.mod has %s", got, server)
	}
	language := find(t, "go.mod", mod, `(?m)^go (\S+)$`)
	if got := find(t, "Dockerfile", read(t, "Dockerfile"), `FROM golang:(\S+)`); got != language {
		t.Errorf("Dockerfile builds with Go %s, go.mod says %s", got, language)
	}
}

func TestPermissionsAreThoseOfTheCode(t *testing.T) {
	t.Parallel()
	var want bytes.Buffer
	if err := roles.WritePermissions(&want, bus.DefaultPrefix, provision.DefaultPartitions); err != nil {
		t.Fatal(err)
	}
	if read(t, "nats/permissions.conf") != want.String() {
		t.Error("nats/permissions.conf is old; make it again: go run ./cmd/settle permissions > deploy/nats/permissions.conf")
	}
}

// programs are started by the files in this directory; the values are the arguments that print their flags.
var programs = map[string][]string{
	"spaceworker": {"--help"}, "coordinator": {"--help"}, "settle provision": {"provision", "--help"},
	"settle doctor": {"doctor", "--help"},
}

// help returns a program's description of its flags and environment variables.
func help(t *testing.T, program string) string {
	t.Helper()
	name, _, _ := strings.Cut(program, " ")
	out, code := once(t.Context(), t, nil, name, programs[program]...)
	if code != 0 {
		t.Fatalf("%s --help ends with %d:\n%s", program, code, out)
	}
	return out
}

func wantFlags(t *testing.T, file, program, args string) {
	t.Helper()
	text := help(t, program)
	for _, flag := range regexp.MustCompile(`--[a-z-]+`).FindAllString(args, -1) {
		if !strings.Contains(text, flag) {
			t.Errorf("%s: %s has no flag %s", file, program, flag)
		}
	}
}

func TestUnitsUseFlagsThatExist(t *testing.T) {
	t.Parallel()
	units, err := filepath.Glob("systemd/*.service")
	if err != nil || len(units) != 3 {
		t.Fatalf("units: %v, %v", units, err)
	}
	for _, unit := range units {
		start := find(t, unit, read(t, unit), `(?m)^ExecStart=/usr/local/bin/(.*)$`)
		program, args, _ := strings.Cut(start, " ")
		if program != "nats-server" {
			wantFlags(t, unit, program, args)
		}
	}
}

func TestComposeUsesFlagsAndSettingsThatExist(t *testing.T) {
	t.Parallel()
	compose := read(t, "compose/compose.yaml")
	for _, m := range regexp.MustCompile(`command: \[(.*)\]`).FindAllStringSubmatch(compose, -1) {
		words := strings.Fields(strings.NewReplacer(`"`, "", ",", "").Replace(m[1]))
		program := words[0]
		switch program {
		case "nats-server":
			continue
		case "settle", "doctor":
			program = "settle " + words[min(1, len(words)-1)]
			if words[0] == "doctor" {
				program = "settle doctor"
			}
		}
		wantFlags(t, "compose.yaml", program, strings.Join(words, " "))
	}
	all := help(t, "spaceworker") + help(t, "coordinator") + help(t, "settle provision")
	server := read(t, "nats/cluster.conf") + read(t, "nats/users.conf")
	for _, m := range regexp.MustCompile(`(?m)[{, ]((?:SETTLE|NATS)_[A-Z_]+): `).FindAllStringSubmatch(compose, -1) {
		name := m[1]
		// The variable is a password of users.conf, a flag of a program, or one that every NATS client reads.
		if !strings.Contains(server, "$"+name) && !strings.Contains(all, "$"+name) && !slices.Contains([]string{"NATS_URL", "NATS_USER", "NATS_PASSWORD"}, name) {
			t.Errorf("compose.yaml sets %s, which nothing reads", name)
		}
	}
	example := read(t, "compose/example.env")
	for _, m := range regexp.MustCompile(`\$\{([A-Z_]+)`).FindAllStringSubmatch(compose, -1) {
		if !strings.Contains(example, "\n"+m[1]+"=") {
			t.Errorf("example.env has no %s, which compose.yaml uses", m[1])
		}
	}
	for what, n := range map[string]int{"nats-": 3, "worker-": 3, "coordinator-": 2} { // any order: the files are independent
		if got := len(regexp.MustCompile(`(?m)^  `+what+`\d:\n    <<`).FindAllString(compose, -1)); got != n {
			t.Errorf("compose.yaml has %d services %sN, want %d", got, what, n)
		}
	}
}

// The stop timeout of a unit must exceed that of its program.
func TestUnitsAndComposeLeaveTimeToStop(t *testing.T) {
	t.Parallel()
	gives := find(t, "internal/process", read(t, "../internal/process/process.go"), `default:"(\d+)s" env:"SETTLE_STOP_TIMEOUT"`)
	for file, pattern := range map[string]string{ // any order: the files are independent
		"systemd/settle-spaceworker@.service": `TimeoutStopSec=(\d+)`, "systemd/settle-coordinator@.service": `TimeoutStopSec=(\d+)`,
		"compose/compose.yaml": `20 s\.\n  stop_grace_period: (\d+)s`,
	} {
		var self, grants int
		_, _ = fmt.Sscan(gives, &self)
		_, _ = fmt.Sscan(find(t, file, read(t, file), pattern), &grants)
		if grants <= self {
			t.Errorf("%s grants %d s, the programs take up to %d", file, grants, self)
		}
	}
}

func TestUnitsAreWhatSystemdTakes(t *testing.T) {
	t.Parallel()
	verify, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("systemd-analyze is not here: the units are not verified")
		return
	}
	dir := t.TempDir()
	for _, name := range []string{"nats-server", "settle-spaceworker", "settle-coordinator"} {
		unit := read(t, "systemd/"+name+"@.service")
		program := find(t, name, unit, `ExecStart=/usr/local/bin/(\S+)`)
		unit = strings.ReplaceAll(unit, "/usr/local/bin/"+program, binary(t, program))
		path := filepath.Join(dir, name+"@1.service")
		writeFile(t, path, unit)
		if out, err := exec.Command(verify, "verify", path).CombinedOutput(); err != nil || strings.Contains(string(out), name) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// What a compose file publishes can be reached from this machine only, and no monitoring port is published.
func TestComposePublishesToThisMachineOnly(t *testing.T) {
	t.Parallel()
	ports := regexp.MustCompile(`(?m)^ *ports: *(.*)$`).FindAllStringSubmatch(read(t, "compose/compose.yaml"), -1)
	if len(ports) == 0 {
		t.Error("no port is published")
	}
	for _, m := range ports {
		for _, p := range regexp.MustCompile(`"([^"]*)"`).FindAllStringSubmatch(m[1], -1) {
			if !strings.HasPrefix(p[1], "127.0.0.1:") || strings.HasSuffix(p[1], ":8222") {
				t.Errorf("port %s is published", p[1])
			}
		}
		if !strings.HasPrefix(m[1], "[") {
			t.Errorf("ports are %s: write them in one line", m[1])
		}
	}
	for _, line := range []string{"listen: 127.0.0.1:4222", "http: 127.0.0.1:8222"} {
		if !strings.Contains(read(t, "nats/nats-server.conf"), line) {
			t.Errorf("nats-server.conf has no %q", line)
		}
	}
}

// The gate verifies modules, looks for known vulnerabilities, and tries a release; the workflow that makes one does what the gate has tried.
func TestSupply_TheGateTriesARelease(t *testing.T) {
	t.Parallel()
	gate, workflow := read(t, "../.ci/run"), read(t, "../.github/workflows/release.yml")
	for text, parts := range map[string][]string{ // any order: each on its own
		gate:               {"go mod verify", "govulncheck", "deploy/release --dry-run"},
		workflow:           {"STRICT=1 .ci/run", "deploy/release --version", "docker build -f deploy/Dockerfile"},
		read(t, "release"): {"-trimpath", "cyclonedx-gomod", "sha256sum", "ssh-keygen -q -Y sign", "is not reproducible"},
	} {
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("%.40q... has no %q", text, part)
			}
		}
	}
}
