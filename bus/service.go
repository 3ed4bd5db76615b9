package bus

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/settlehq/settle/model"
)

// Serve answers requests as a NATS micro service, which `nats micro ls` shows. See
// port.Services.
func (b *Bus) Serve(ctx context.Context, s model.Service) error {
	if err := b.over(ctx); err != nil {
		return err
	}
	service, err := micro.AddService(b.nc, micro.Config{
		Name: s.Name, Description: s.Description, Version: serviceVersion(b.cfg.Version), Metadata: b.serviceMetadata(),
	})
	if err != nil {
		return fmt.Errorf("serve %s: %w", s.Name, err)
	}
	stop := func() { _ = service.Stop() } // fails only if the connection is closed
	for i := range s.Endpoints {
		if err := b.addEndpoint(service, &s.Endpoints[i]); err != nil {
			stop()
			return fmt.Errorf("serve %s: %w", s.Name, err)
		}
	}
	if err := b.flush(ctx); err != nil {
		stop()
		if over := b.over(ctx); over != nil {
			return over
		}
		return fmt.Errorf("serve %s: %w", s.Name, err)
	}
	go func() { // ends with ctx or the bus
		select {
		case <-ctx.Done():
		case <-b.stopped:
		}
		stop()
	}()
	return nil
}

// flush returns when the server has every subscription that was made before. A slow server
// is asked again, for as long as one attempt of any request may take.
func (b *Bus) flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	return b.persist(ctx, func(context.Context) error {
		if err := b.nc.FlushTimeout(b.cfg.AckTimeout); err != nil {
			return transient(err)
		}
		return nil
	})
}

// Metadata of a service: the id of the server that its process embeds, and that server's sync
// interval, which the server itself does not report to clients.
const (
	metaEmbeds = "settle.io/embeds"
	metaSync   = "settle.io/sync" // syncAlways, or a duration
	syncAlways = "always"
)

func (b *Bus) serviceMetadata() map[string]string {
	m := map[string]string{"connection": b.nc.Opts.Name, metaVersion: b.cfg.Version}
	if b.cfg.Server != nil {
		m[metaEmbeds], m[metaSync] = b.nc.ConnectedServerId(), b.cfg.Server.Sync()
	}
	return m
}

// semver matches versions that micro accepts.
var semver = regexp.MustCompile(`^v?(\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]*)?)$`)

func serviceVersion(program string) string {
	if v := semver.FindStringSubmatch(program); v != nil {
		return v[1]
	}
	return "0.0.0"
}

func (b *Bus) addEndpoint(service micro.Service, e *model.Endpoint) error {
	if err := model.CheckName("endpoint", e.Name); err != nil {
		return err
	}
	answer := func(r micro.Request) {
		reply, err := e.Answer(r.Data())
		if err == nil && len(reply) > b.MaxPayload() {
			err = &model.ServiceError{Code: model.CodeTooLarge, Text: fmt.Sprintf("the answer has %d bytes, the server takes %d; ask for less", len(reply), b.MaxPayload())}
		}
		if err != nil {
			said := model.AsServiceError(err)
			_ = r.Error(strconv.Itoa(said.Code), said.Text, nil) // the requester has a timeout
			return
		}
		_ = r.Respond(reply) // the requester has a timeout
	}
	if e.Open != nil {
		answer = func(r micro.Request) { e.Open(r.Data(), b.newOutlet(r.Reply())) }
	}
	return service.AddEndpoint(e.Name, micro.HandlerFunc(answer),
		micro.WithEndpointSubject(b.names.endpoint(e.Name)),
		micro.WithEndpointMetadata(map[string]string{"description": e.Description}))
}

// askPatience is how long one attempt of a request may take: it can get lost with
// the process that received it.
const askPatience = 15 * time.Second

// Ask sends a request to one of the processes that serve the endpoint. See port.Services. Without a
// deadline it gives up after askPatience.
func (b *Bus) Ask(ctx context.Context, endpoint string, request []byte) ([]byte, error) {
	if err := model.CheckName("endpoint", endpoint); err != nil {
		return nil, err
	}
	if size, limit := len(request), b.MaxPayload(); size > limit {
		return nil, tooLargeError("question to "+endpoint, size, limit)
	}
	bounded, cancel := ctx, context.CancelFunc(func() {})
	if _, has := ctx.Deadline(); !has {
		bounded, cancel = context.WithTimeout(ctx, askPatience)
	}
	defer cancel()
	var reply []byte
	err := b.persist(bounded, func(ctx context.Context) (err error) {
		reply, err = b.askOnce(ctx, endpoint, request)
		return err
	})
	if over := b.over(ctx); over != nil {
		return nil, over
	}
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", b.names.endpoint(endpoint), err)
	}
	return reply, nil
}

func (b *Bus) askOnce(ctx context.Context, endpoint string, request []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	m, err := b.nc.RequestWithContext(ctx, b.names.endpoint(endpoint), request)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return nil, model.ErrNobody
	case err != nil:
		return nil, transient(err)
	}
	if code := header(m.Header, micro.ErrorCodeHeader); code != "" {
		n, _ := strconv.Atoi(code)
		return nil, &model.ServiceError{Code: n, Text: header(m.Header, micro.ErrorHeader)}
	}
	return m.Data, nil
}
