// Package drain lets an operator stop a worker from any place of the deployment. The request is a record of the deployment, so the
// permission of the servers to store records decides which users may make it; the worker follows the records about its own id.
//
// A request names the life of the worker, which is another one after each start: it stops the process that it was meant for, however late
// that reads it, and none that is started under the same id afterwards.
package drain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// under returns what the keys of the records about a worker begin with, and keyOf that of the request.
func under(worker string) string { return "drain." + worker }
func keyOf(worker string) string { return under(worker) + ".request" }

// Request asks a worker to stop as SIGTERM does.
type Request struct {
	// Life is that of the worker: model.Member.Life.
	Life string `json:"life"`
	// By is the operator, as the command knows it, and At when it has asked.
	By string    `json:"by,omitzero"`
	At time.Time `json:"at"`
}

// largest bounds a request, in bytes.
const largest = 4096

// Ask stores a request to a worker, over any earlier one. The error is model.ErrForbidden if the user of the connection may not.
func Ask(ctx context.Context, records port.Records, worker string, r Request) error {
	data, err := json.Marshal(&r)
	if err != nil {
		return err
	}
	for {
		was, err := records.LoadRecord(ctx, keyOf(worker))
		if err != nil {
			return err
		}
		_, err = records.SaveRecord(ctx, model.Record{Key: was.Key, Data: data, Rev: was.Rev})
		if !errors.Is(err, model.ErrOutdated) || ctx.Err() != nil {
			return err
		}
	}
}

// again is how long to wait before requests are followed again.
const again = 2 * time.Second

// Await returns the first request to a worker in this life of it, nil when ctx ends or the bus is stopped.
func Await(ctx context.Context, records port.Records, worker, life string, log *slog.Logger) *Request {
	for {
		found, stop := context.WithCancel(ctx)
		var request *Request
		err := records.FollowRecords(found, under(worker), func(rec model.Record) {
			if request != nil {
				return
			}
			r, err := decode(rec)
			switch {
			case err != nil:
				log.Warn("a request to stop this worker cannot be read, and is passed over", "worker", worker, "record", rec.Key, "error", err)
				port.PassRecordOver(records, &rec, err.Error())
			case r.Life == life:
				request = r
				stop()
			}
		}, func() {})
		stop()
		if request != nil || ctx.Err() != nil || errors.Is(err, model.ErrStopped) {
			return request
		}
		log.Warn("requests to stop this worker cannot be followed at the moment", "worker", worker, "error", err)
		if pause.For(ctx, again) != nil {
			return nil
		}
	}
}

func decode(rec model.Record) (*Request, error) {
	if len(rec.Data) > largest {
		return nil, fmt.Errorf("it has %d bytes, more than %d", len(rec.Data), largest)
	}
	r := &Request{}
	if len(rec.Data) == 0 { // deleted with a tool
		return r, nil
	}
	return r, json.Unmarshal(rec.Data, r)
}
