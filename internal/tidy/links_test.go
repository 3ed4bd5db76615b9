package tidy

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// linkRule lists packages that a package must not link, directly or indirectly, and the maximum number
// of packages that it links. A limit is a few packages above the measured number, so that raising it is
// a deliberate change.
type linkRule struct {
	pkg   string
	never []string
	most  int
}

const (
	natsServer = "github.com/nats-io/nats-server/v2/server"
	starlark   = "go.starlark.net/starlark"
	memdb      = "github.com/hashicorp/go-memdb"
	exporters  = "go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	logSDK     = "go.opentelemetry.io/otel/sdk/log"
	sdk        = "go.opentelemetry.io/otel/sdk/metric"
	testKit    = module + "/internal/simkit"
	spaceCore  = module + "/space"
)

var linkRules = []linkRule{
	{"port", []string{natsServer, starlark, memdb, exporters, testKit, spaceCore}, 111},
	{"history", []string{natsServer, starlark, memdb, exporters, testKit, spaceCore}, 127},
	{"coordinator", []string{natsServer, starlark, memdb, exporters, sdk, logSDK, testKit, spaceCore}, 157},
	{"status", []string{natsServer, starlark, memdb, exporters, testKit, spaceCore}, 113},
	{"worker", []string{natsServer, starlark, exporters, sdk, testKit}, 174},
	{"worker/host", []string{natsServer, starlark, memdb, exporters, sdk, testKit, spaceCore}, 167},
	{"live", []string{natsServer, starlark, memdb, exporters, testKit, spaceCore}, 156},
	{"gateway", []string{natsServer, starlark, memdb, exporters, testKit, spaceCore}, 239},
	{"ordered", []string{natsServer, starlark, memdb, exporters, sdk, logSDK, testKit, spaceCore}, 171},
	// nats.go alone is 208 packages, 191 of the standard library among them.
	{"bus", []string{natsServer, starlark, memdb, exporters, testKit, spaceCore}, 239},
	{"program", []string{natsServer, exporters, testKit}, 164},
	{".", []string{exporters, sdk, logSDK, testKit}, 358},
	{"cmd/coordinator", []string{natsServer, starlark, memdb, testKit, spaceCore}, 549},
	{"spaceworker", []string{testKit}, 638},
	{"cmd/spaceworker", []string{testKit}, 640},
	{"cmd/settle", []string{sdk}, 632},
}

// A package links its imports and their imports: a client of three lines links everything below the
// package that it imports.
func TestLinks_StayWithinTheirBounds(t *testing.T) {
	for _, r := range linkRules {
		out, err := exec.Command("go", "list", "-deps", strings.TrimSuffix(module+"/"+r.pkg, "/.")).Output()
		if err != nil {
			t.Fatalf("go list -deps %s: %v", r.pkg, err)
		}
		linked := strings.Fields(string(out))
		for _, never := range r.never {
			if slices.Contains(linked, never) {
				t.Errorf("package %s links %s, through one of its imports: go list -deps shows which", r.pkg, never)
			}
		}
		if len(linked) > r.most {
			t.Errorf("package %s links %d packages, more than %d: was that meant?", r.pkg, len(linked), r.most)
		}
	}
}
