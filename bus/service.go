package bus

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/bus/provision"
	"github.com/settlehq/settle/model"
)

// services sends requests to the processes that serve endpoints, and serves endpoints itself.
type services struct {
	*wire.Streams
	server  InProcess // the embedded server, nil if there is none
	outlets outlets
}

// Serve answers requests as a NATS micro service, which `nats micro ls` shows. See
// port.Services.
func (sv *services) Serve(ctx context.Context, s model.Service) error {
	if err := sv.Over(ctx); err != nil {
		return err
	}
	service, err := micro.AddService(sv.NC, micro.Config{
		Name: s.Name, Description: s.Description, Version: serviceVersion(sv.Version), Metadata: sv.serviceMetadata(),
	})
	if err != nil {
		return fmt.Errorf("serve %s: %w", s.Name, err)
	}
	stop := func() { _ = service.Stop() } // fails only if the connection is closed
	for i := range s.Endpoints {
		if err := sv.addEndpoint(service, &s.Endpoints[i]); err != nil {
			stop()
			return fmt.Errorf("serve %s: %w", s.Name, err)
		}
	}
	if err := sv.Flush(ctx); err != nil {
		stop()
		if over := sv.Over(ctx); over != nil {
			return over
		}
		return fmt.Errorf("serve %s: %w", s.Name, err)
	}
	go func() { // ends with ctx or the bus
		select {
		case <-ctx.Done():
		case <-sv.Stopped:
		}
		stop()
	}()
	return nil
}

func (sv *services) serviceMetadata() map[string]string {
	m := map[string]string{"connection": sv.NC.Opts.Name, provision.MetaVersion: sv.Version}
	if sv.server != nil {
		m[wire.MetaEmbeds], m[wire.MetaSync] = sv.NC.ConnectedServerId(), sv.server.Sync()
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

func (sv *services) addEndpoint(service micro.Service, e *model.Endpoint) error {
	if err := model.CheckName("endpoint", e.Name); err != nil {
		return err
	}
	answer := func(r micro.Request) {
		if !sv.Answers(r.Reply(), "question", r.Subject()) {
			return
		}
		reply, err := e.Answer(r.Data())
		if err == nil && len(reply) > sv.MaxPayload() {
			err = &model.ServiceError{Code: model.CodeTooLarge, Text: fmt.Sprintf("the answer has %d bytes, the server takes %d; ask for less", len(reply), sv.MaxPayload())}
		}
		if err != nil {
			said := model.AsServiceError(err)
			_ = r.Error(strconv.Itoa(said.Code), said.Text, nil) // the requester has a timeout
			return
		}
		_ = r.Respond(reply) // the requester has a timeout
	}
	if e.Open != nil {
		answer = func(r micro.Request) {
			if sv.Answers(r.Reply(), "question", r.Subject()) {
				e.Open(r.Data(), sv.newOutlet(r.Reply()))
			}
		}
	}
	about := micro.WithEndpointMetadata(map[string]string{"description": e.Description})
	err := service.AddEndpoint(e.Name, micro.HandlerFunc(answer), micro.WithEndpointSubject(sv.Names.Endpoint(e.Name)), about)
	if e.OpenBy == nil || err != nil {
		return err
	}
	by := func(r micro.Request) {
		principal := wire.LastToken(r.Subject())
		if model.CheckName("principal", principal) == nil && sv.Answers(r.Reply(), "question", r.Subject()) {
			e.OpenBy(principal, r.Data(), sv.newOutlet(r.Reply()))
		}
	}
	return service.AddEndpoint(e.Name+"-by", micro.HandlerFunc(by), micro.WithEndpointSubject(sv.Names.Endpoint(e.Name)+".*"), about)
}

// Ask sends a request to one of the processes that serve the endpoint. See port.Services. Without a
// deadline it gives up after askPatience.
func (sv *services) Ask(ctx context.Context, endpoint string, request []byte) ([]byte, error) {
	if _, _, err := model.CutEndpoint(endpoint); err != nil {
		return nil, err
	}
	if size, limit := len(request), sv.MaxPayload(); size > limit {
		return nil, wire.TooLargeError("question to "+endpoint, size, limit)
	}
	bounded, cancel := ctx, context.CancelFunc(func() {})
	if _, has := ctx.Deadline(); !has {
		bounded, cancel = context.WithTimeout(ctx, wire.AskPatience)
	}
	defer cancel()
	var reply []byte
	err := sv.Persist(bounded, func(ctx context.Context) (err error) {
		reply, err = sv.askOnce(ctx, endpoint, request)
		return err
	})
	if over := sv.Over(ctx); over != nil {
		return nil, over
	}
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", sv.Names.Endpoint(endpoint), err)
	}
	return reply, nil
}

func (sv *services) askOnce(ctx context.Context, endpoint string, request []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, wire.AskPatience)
	defer cancel()
	m, err := sv.NC.RequestWithContext(ctx, sv.Names.Endpoint(endpoint), request)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return nil, model.ErrNoResponder
	case err != nil:
		return nil, wire.Transient(err)
	}
	if code := wire.Header(m.Header, micro.ErrorCodeHeader); code != "" {
		n, _ := strconv.Atoi(code)
		return nil, &model.ServiceError{Code: n, Text: wire.Header(m.Header, micro.ErrorHeader)}
	}
	return m.Data, nil
}
