package test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/worker"
)

// The leader of all streams in a cluster of three stops, restarts with older files, and leads again: the others
// first restore what it has lost, so nothing is lost, nothing is handled twice, and nothing is blocked.
func TestRewind_ALeaderThatLostItsTailInAClusterLeadsAgain(t *testing.T) {
	t.Parallel() // a cluster needs much time, but almost no CPU
	c, err := natstest.StartCluster(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Shutdown)
	d := deploy(t, settle.Config{
		Programs: settle.Always(relay()), Options: worker.Options{Heartbeat: 5 * deployHeartbeat, Idle: 10 * time.Millisecond},
		Bus: bus.Config{
			URL: c.URLs(), Prefix: "tail", Partitions: 1, AckTimeout: 2 * time.Second,
			Options: []nats.Option{nats.ReconnectWait(10 * time.Millisecond), nats.ReconnectJitter(0, 0), nats.Timeout(patience)},
		},
	})
	client := d.Client()
	streams := []string{"TAIL_LOG_0", "TAIL_LANE_0", "KV_TAIL_STATE_0"}
	victim := c.Servers[0].Name()
	leads := func(stream string) {
		persistently(testContext(t), t, victim+" leads "+stream, func(ctx context.Context) error {
			s, err := d.Bus().JetStream().Stream(ctx, stream)
			if err != nil {
				return err
			}
			if is := s.CachedInfo().Cluster; is == nil || is.Leader != victim {
				_, err = d.Bus().Conn().RequestWithContext(ctx, "$JS.API.STREAM.LEADER.STEPDOWN."+stream, []byte(`{"placement":{"preferred":"`+victim+`"}}`))
				return errors.Join(err, errNotThere)
			}
			return nil
		})
	}
	sendAll(t, client, 1, 8)
	eventually(t, client, "a", "departed", 8)
	eventually(t, client, "b", "arrived", 8)
	older := filepath.Join(t.TempDir(), "older")
	files := c.Stop(0)
	if err := errors.Join(os.CopyFS(older, os.DirFS(files)), c.Start(0, files)); err != nil {
		t.Fatal(err)
	}
	for _, stream := range streams {
		leads(stream)
	}
	sendAll(t, client, 9, 16)
	eventually(t, client, "a", "departed", 16)
	eventually(t, client, "b", "arrived", 16)
	c.Stop(0)
	if err := c.Start(0, older); err != nil {
		t.Fatal(err)
	}
	for _, stream := range streams {
		leads(stream)
	}
	sendAll(t, client, 13, 24) // eight of them are new
	eventually(t, client, "a", "departed", 24)
	eventually(t, client, "b", "arrived", 24)
	once(t, readLog(t, d.Bus(), "a"))
	once(t, readLog(t, d.Bus(), "b"))
	if rewinds := d.Bus().Rewinds(); len(rewinds) > 0 {
		t.Errorf("streams are said to have gone back: %+v", rewinds)
	}
}
