//go:build cluster

package bus_test

import (
	"context"
	"fmt"
	"testing"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"github.com/settlehq/settle/bus/buscontract"
)

// The contract holds in a cluster as on a single server. The test has its own build tag because each check
// creates seven replicated streams, which takes more than a minute in all:
//
//	go test -tags cluster -run Contract ./bus/
func TestContractInCluster(t *testing.T) {
	t.Parallel()
	buscontract.Run(t, &clusterHarness{servers: startCluster(t).Servers})
}

// clusterHarness gives every deployment its own prefix in one cluster.
type clusterHarness struct {
	servers     []*natsserver.Server
	deployments int
}

func (h *clusterHarness) Start(t *testing.T, partitions int) buscontract.Deployment {
	h.deployments++
	d := deploy(t, h.servers[h.deployments%len(h.servers)], fmt.Sprintf("d%d", h.deployments), partitions)
	t.Cleanup(func() { // keeps the cluster small
		for _, c := range d.admin.Wanted() {
			if err := d.admin.JetStream().DeleteStream(context.Background(), c.Name); err != nil {
				t.Error(err)
			}
		}
	})
	return d
}
