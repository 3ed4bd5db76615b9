package survey

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus/internal/wire"
)

// varz is a server's report about itself, on its monitoring port and to the system account.
type varz struct {
	Name       string    `json:"server_name"`
	Version    string    `json:"version"`
	Now        time.Time `json:"now"`
	MaxPayload int64     `json:"max_payload"`
	Cluster    struct {
		Name string `json:"name"`
	} `json:"cluster"`
	JetStream struct {
		Config *struct {
			SyncInterval time.Duration `json:"sync_interval"`
			SyncAlways   bool          `json:"sync_always"`
			MaxStore     int64         `json:"max_storage"`
		} `json:"config"`
		Stats struct {
			Store int64 `json:"storage"`
			API   struct {
				Level int `json:"level"`
			} `json:"api"`
		} `json:"stats"`
	} `json:"jetstream"`
}

// ErrNoMonitor reports that a survey has no way to read the servers' settings.
var ErrNoMonitor = errors.New("servers report their storage settings only on their monitoring port and to the system account")

// monitor asks the servers themselves, in every available way.
func (s *surveyor) monitor(ctx context.Context) {
	s.Monitor = ErrNoMonitor
	var errs []error
	if s.server != nil {
		errs = append(errs, s.askEmbedded())
	}
	for _, url := range s.more.Monitor {
		errs = append(errs, s.askMonitor(ctx, url))
	}
	if s.more.SystemCreds != "" || s.more.SystemUser != "" {
		errs = append(errs, s.askSystem(ctx))
	}
	if len(errs) > 0 {
		s.Monitor = errors.Join(errs...)
	}
}

func (s *surveyor) askEmbedded() error {
	begin := time.Now()
	body, err := s.server.Varz()
	if err != nil {
		return err
	}
	return s.take(body, begin)
}

// askMonitor asks a monitoring port.
func (s *surveyor) askMonitor(ctx context.Context, url string) error {
	ctx, cancel := s.ask(ctx)
	defer cancel()
	if !strings.Contains(url, "://") {
		url = "http://" + url
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(url, "/")+"/varz", nil)
	if err != nil {
		return fmt.Errorf("monitoring port %s: %w", url, err)
	}
	begin := time.Now()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("monitoring port %s: %w", url, err)
	}
	defer func() { _ = response.Body.Close() }()
	var body json.RawMessage
	if err := json.NewDecoder(response.Body).Decode(&body); err != nil || response.StatusCode != http.StatusOK {
		return fmt.Errorf("monitoring port %s: %s: %w", url, response.Status, err)
	}
	http.DefaultClient.CloseIdleConnections()
	return s.take(body, begin)
}

// dialSystem connects as a user of the system account.
func (s *surveyor) dialSystem() (*nats.Conn, error) {
	opts := s.b.Streams().NC.Opts
	opts.Url, opts.Servers = s.b.Streams().NC.ConnectedUrl(), nil
	opts.DisconnectedErrCB, opts.ReconnectedCB, opts.ClosedCB = nil, nil, nil
	opts.User, opts.Password, opts.Token, opts.UserJWT, opts.SignatureCB, opts.Nkey = s.more.SystemUser, s.more.SystemPassword, "", nil, nil, ""
	opts.AllowReconnect = false
	if s.more.SystemCreds != "" {
		if err := nats.UserCredentials(s.more.SystemCreds)(&opts); err != nil {
			return nil, fmt.Errorf("system account: %w", err)
		}
	}
	nc, err := opts.Connect()
	if err != nil {
		return nil, fmt.Errorf("system account: %w", err)
	}
	return nc, nil
}

// askSystem asks all servers at once, as a user of the system account.
func (s *surveyor) askSystem(ctx context.Context) error {
	nc, err := s.dialSystem()
	if err != nil {
		return err
	}
	defer nc.Close()
	begin := time.Now()
	answers, err := collect(ctx, nc, "$SYS.REQ.SERVER.PING.VARZ", nil)
	if err != nil || len(answers) == 0 {
		return fmt.Errorf("system account: %w", askError(cmp.Or(err, nats.ErrTimeout)))
	}
	for _, m := range answers {
		var reply struct{ Data json.RawMessage }
		if err := json.Unmarshal(m.Data, &reply); err != nil {
			return fmt.Errorf("system account: %w", err)
		}
		if err := s.take(reply.Data, begin); err != nil {
			return err
		}
	}
	return nil
}

// take adds a server's report to the known facts about it.
func (s *surveyor) take(body []byte, asked time.Time) error {
	var v varz
	answered := time.Now()
	if err := json.Unmarshal(body, &v); err != nil || v.Version == "" {
		return fmt.Errorf("what a server says of itself cannot be read: %w", err)
	}
	i := slices.IndexFunc(s.Servers, func(f ServerFacts) bool { return f.Name == v.Name })
	if i < 0 {
		s.Servers = append(s.Servers, ServerFacts{
			Name: v.Name, Version: v.Version, Cluster: v.Cluster.Name, MaxPayload: v.MaxPayload, TooOld: wire.CheckVersion(v.Version),
			JetStream: v.JetStream.Config != nil,
		})
		i = len(s.Servers) - 1
	}
	f := &s.Servers[i]
	f.Clock = clockFacts(v.Now, asked, answered)
	f.APILevel = max(f.APILevel, v.JetStream.Stats.API.Level)
	if c := v.JetStream.Config; c != nil {
		f.JetStream = true
		f.Disk = &DiskFacts{SyncAlways: c.SyncAlways, SyncInterval: c.SyncInterval, Used: v.JetStream.Stats.Store, Limit: c.MaxStore}
	}
	return nil
}

// clockFacts compares a time that was read between two local ones.
func clockFacts(theirs, asked, answered time.Time) *ClockFacts {
	if theirs.IsZero() {
		return nil
	}
	half := answered.Sub(asked) / 2
	return &ClockFacts{Offset: theirs.Sub(asked.Add(half)).Round(time.Millisecond), Uncertainty: half}
}
