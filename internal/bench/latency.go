package bench

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/model"
)

// Percentiles of a latency, in microseconds.
type Percentiles struct {
	P50 float64 `json:"p50_us"`
	P99 float64 `json:"p99_us"`
}

func percentiles(d []time.Duration) Percentiles {
	slices.Sort(d)
	at := func(q float64) float64 {
		return float64(d[min(len(d)-1, int(q*float64(len(d))))]) / float64(time.Microsecond)
	}
	return Percentiles{P50: at(0.50), P99: at(0.99)}
}

// latency measures one event at a time, alternating the three kinds, so that all see the same
// machine.
func (r *run) latency(ctx context.Context) error {
	const space = "counter0"
	deliveries := make(chan string, 1)
	if err := r.listen(ctx, deliveries); err != nil {
		return err
	}
	var publish, delivery, receipt []time.Duration
	for i := range r.cfg.Single {
		n := strconv.Itoa(i)
		begin := time.Now()
		if _, err := r.bus.JetStream().Publish(ctx, r.bus.LaneSubject(idle, "add", "p"+n), payload); err != nil {
			return err
		}
		publish = append(publish, time.Since(begin))
		await(ctx, deliveries, "p"+n)

		begin = time.Now()
		if err := r.bus.Conn().Publish(r.bus.LaneSubject(idle, "add", "d"+n), payload); err != nil {
			return err
		}
		await(ctx, deliveries, "d"+n)
		delivery = append(delivery, time.Since(begin))

		begin = time.Now()
		if err := r.call(ctx, space, "c"+n); err != nil {
			return err
		}
		receipt = append(receipt, time.Since(begin))
	}
	r.out.Publish, r.out.Delivery, r.out.Receipt = percentiles(publish), percentiles(delivery), percentiles(receipt)
	r.out.ReceiptRatio = r.out.Receipt.P50 / (r.out.Publish.P50 + r.out.Delivery.P50)
	return ctx.Err()
}

var payload = []byte(`{"by":1}`)

// idle is a space without a program: publishing to it measures the server alone.
const idle = "plain"

func (r *run) call(ctx context.Context, space, id string) error {
	rc, err := r.deployment.Client().Call(ctx, settle.Outgoing{Space: space, Stream: "add", ID: settle.ID(id), Payload: one})
	if err != nil {
		return err
	}
	if rc.Outcome != model.Handled {
		return errors.New("the counter's handler failed: " + rc.Error)
	}
	return nil
}

// listen reports the ids of events that a consumer of the idle space's lane receives.
func (r *run) listen(ctx context.Context, deliveries chan<- string) error {
	p := model.PartitionOf(idle, r.bus.Partitions())
	end, err := r.bus.LaneEnd(ctx, p)
	if err != nil {
		return err
	}
	go func() { // ends with ctx or the bus
		_ = r.bus.FollowLane(ctx, p, end, func(m model.Message) {
			if m.Space == idle {
				deliveries <- m.ID
			}
		})
	}()
	return nil
}

func await(ctx context.Context, deliveries <-chan string, id string) {
	for {
		select {
		case got := <-deliveries:
			if got == id {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}
