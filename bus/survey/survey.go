package survey

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/bus/provision"
	"github.com/settlehq/settle/bus/roles"
	"github.com/settlehq/settle/model"
)

// Survey is what a connection can find out about a deployment without changing anything: facts,
// and for facts that could not be read, the reason. It contains no judgement.
type Survey struct {
	Prefix  string
	Now     time.Time
	Cluster string // "" for a server outside a cluster
	// Connected is the name of the server that was asked.
	Connected string
	Servers   []ServerFacts
	// Unreachable are addresses of the cluster that could not be connected to.
	Unreachable []Unseen
	User        UserFacts
	// Storage is of the account, on all servers together.
	Storage StorageFacts
	// JetStream is why JetStream cannot be used, nil if it can.
	JetStream error
	// Monitor is why the servers' own settings are not known, nil if they are.
	Monitor error

	// NoDeployment reports that the prefix has no deployment. Otherwise Streams are its assets.
	NoDeployment bool
	// Others are, with NoDeployment, the prefixes of the account's deployments, if this user may list them.
	Others []string
	// Settings is why the deployment's settings could not be read or differ from the configured ones.
	Settings   error
	Partitions int
	Horizon    time.Duration
	Streams    []StreamFacts
	Reaches    []ReachFacts
	Members    []MemberFacts
	Services   []ServiceFacts
	// Created is when the deployment was created, zero if that is not known.
	Created time.Time
	// Backup is the newest recorded backup, nil if there is none; BackupUnseen is why that is not known.
	Backup       *bus.BackupNote
	BackupUnseen error
	// Rewinds are the recorded streams that have gone back to an earlier state.
	Rewinds []model.RewindNote
	// Borders are facts about the account of the streams, nil if no user of the system account is configured.
	Borders *BorderFacts
	// MembersUnseen and ServicesUnseen are why there are none.
	MembersUnseen, ServicesUnseen error
}

// Unseen is something that could not be read.
type Unseen struct {
	What   string
	Reason error
}

// ServerFacts are about one server.
type ServerFacts struct {
	Name, URL, Version, Cluster string
	// ID identifies the server; "" for a server that was not connected to directly.
	ID string
	// RTT is 0 for a server that was not connected to directly.
	RTT        time.Duration
	JetStream  bool
	APILevel   int // of JetStream; 0 is not known
	MaxPayload int64
	// TooOld is why this version is not sufficient.
	TooOld error
	Disk   *DiskFacts  // nil if it is not known
	Clock  *ClockFacts // nil if it is not known
}

// DiskFacts are how a server stores.
type DiskFacts struct {
	SyncAlways   bool
	SyncInterval time.Duration
	Used, Limit  int64 // bytes
	// ByProcess: the process that embeds the server has reported this, without Used and
	// Limit.
	ByProcess bool
}

// ClockFacts compare a server's clock with that of this process: it is ahead by Offset, with
// an error of at most Uncertainty.
type ClockFacts struct{ Offset, Uncertainty time.Duration }

// UserFacts describe the user of this connection.
type UserFacts struct {
	User, Account string
	// Unknown is why the user's permissions are not known.
	Unknown error
	// Roles are those of Roles that the user's permissions suffice for, and Lacks the subjects that each
	// other role needs in addition.
	Roles []string
	Lacks map[string][]string
	// Unlimited: there are no permissions, so everything is allowed.
	Unlimited bool
}

// StorageFacts are of an account. A limit of 0 or less means no limit.
type StorageFacts struct{ Used, Limit int64 }

// Config lists further sources of a survey.
type Config struct {
	// Monitor are URLs of the servers' monitoring ports, such as http://127.0.0.1:8222.
	Monitor []string
	// SystemCreds is a credentials file, and SystemUser a user, of the system account.
	SystemCreds, SystemUser, SystemPassword string
	// Restoring includes a deployment that is being restored.
	Restoring bool
}

// quiet is the silence after the last answer to a request for many responders until all are
// assumed to have answered.
const quiet = 400 * time.Millisecond

// New examines the deployment that cfg names. It returns an error only if there is no connection
// at all; every other failure is part of the result.
func New(ctx context.Context, cfg bus.Config, more Config) (*Survey, error) {
	b, err := bus.Dial(cfg)
	if err != nil {
		return nil, err
	}
	defer b.Kill()
	b.Provisioner.Restoring = more.Restoring
	s := &surveyor{b: b, server: cfg.Server, more: more, Survey: &Survey{Prefix: b.Prefix(), Now: time.Now(), Cluster: b.Streams().NC.ConnectedClusterName(), Connected: b.Streams().NC.ConnectedServerName()}}
	s.servers()
	s.monitor(ctx)
	if s.account(ctx); s.JetStream == nil {
		s.deployment(ctx)
	}
	s.user(ctx)
	s.borders(ctx)
	return s.Survey, ctx.Err()
}

// surveyor is a running survey.
type surveyor struct {
	*Survey
	b      *bus.Bus
	server bus.InProcess // the embedded server, nil if there is none
	more   Config
}

// ask limits one request, so that a deployment that answers nothing is detected.
func (s *surveyor) ask(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.b.Streams().AckTimeout)
}

// servers connects to every server that the connection knows of.
func (s *surveyor) servers() {
	s.Servers = append(s.Servers, serverFacts(s.b.Streams().NC))
	if s.server != nil {
		return
	}
	for _, url := range s.b.Streams().NC.Servers() {
		if url == s.b.Streams().NC.ConnectedUrl() {
			continue
		}
		found, err := s.speakTo(url)
		switch {
		case err != nil:
			s.Unreachable = append(s.Unreachable, Unseen{url, err})
		case !slices.ContainsFunc(s.Servers, func(f ServerFacts) bool { return f.Name == found.Name }):
			s.Servers = append(s.Servers, found)
		}
	}
	slices.SortFunc(s.Servers, func(a, b ServerFacts) int { return cmp.Compare(a.Name, b.Name) })
}

// speakTo connects to one server and to no other.
func (s *surveyor) speakTo(url string) (ServerFacts, error) {
	opts := s.b.Streams().NC.Opts
	opts.Url, opts.Servers, opts.AllowReconnect, opts.RetryOnFailedConnect = url, []string{url}, false, false
	opts.Timeout = 2 * time.Second
	opts.DisconnectedErrCB, opts.ReconnectedCB, opts.ClosedCB = nil, nil, nil
	opts.IgnoreDiscoveredServers = true
	nc, err := opts.Connect()
	if err != nil {
		return ServerFacts{}, err
	}
	defer nc.Close()
	return serverFacts(nc), nil
}

func serverFacts(nc *nats.Conn) ServerFacts {
	f := ServerFacts{
		Name: nc.ConnectedServerName(), ID: nc.ConnectedServerId(), URL: nc.ConnectedUrlRedacted(), Version: nc.ConnectedServerVersion(),
		Cluster: nc.ConnectedClusterName(), MaxPayload: nc.MaxPayload(),
	}
	f.JetStream, f.APILevel = nc.ConnectedServerJetStream()
	f.TooOld = wire.CheckVersion(f.Version)
	f.RTT, _ = nc.RTT() // 0 if it is gone again
	return f
}

// account reads the account's JetStream limits.
func (s *surveyor) account(ctx context.Context) {
	ctx, cancel := s.ask(ctx)
	defer cancel()
	info, err := s.b.Streams().JS.AccountInfo(ctx)
	if err != nil {
		s.JetStream = cmp.Or(wire.APITransient(err), err)
		return
	}
	s.Storage = StorageFacts{Used: int64(info.Store), Limit: info.Limits.MaxStore}
	for _, tier := range info.Tiers {
		s.Storage.Used += int64(tier.Store)
		s.Storage.Limit = max(s.Storage.Limit, tier.Limits.MaxStore)
	}
}

// user asks the server for this connection's user, and compares its permissions with the roles.
func (s *surveyor) user(ctx context.Context) {
	ctx, cancel := s.ask(ctx)
	defer cancel()
	u, err := s.b.Streams().AskUser(ctx)
	if err != nil {
		s.User.Unknown = err
		return
	}
	s.User.User, s.User.Account = u.User, u.Account
	if s.User.Unlimited = u.Permissions == nil; s.User.Unlimited {
		return
	}
	s.User.Lacks = map[string][]string{}
	for _, r := range roles.Of(s.b.Prefix(), max(1, s.Partitions)) {
		if r.Outside {
			continue // it would be in another account
		}
		lacks := append(u.Permissions.Publish.Lacks("publish", r.Publish), u.Permissions.Subscribe.Lacks("subscribe", r.Subscribe)...)
		if len(lacks) == 0 {
			s.User.Roles = append(s.User.Roles, r.Name)
		} else {
			s.User.Lacks[r.Name] = lacks
		}
	}
}

// ErrNoAnswer is why something could not be read that nothing answered for.
var ErrNoAnswer = errors.New("no answer (often this means that the user may not ask)")

// askError returns why a request without permission has no answer.
func askError(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) {
		return ErrNoAnswer
	}
	return err
}

// collect gathers the answers of all responders to one request.
func collect(ctx context.Context, nc *nats.Conn, subject string, body []byte) (answers []*nats.Msg, err error) {
	inbox := nc.NewInbox()
	messages := make(chan *nats.Msg, 256)
	sub, err := nc.ChanSubscribe(inbox, messages)
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only if the connection is closed
	if err := nc.PublishRequest(subject, inbox, body); err != nil {
		return nil, err
	}
	patience := time.NewTimer(4 * quiet)
	defer patience.Stop()
	for {
		select {
		case m := <-messages:
			if wire.Header(m.Header, wire.HeaderStatus) == "503" {
				return nil, nats.ErrNoResponders
			}
			answers = append(answers, m)
			patience.Reset(quiet)
		case <-patience.C:
			return answers, nil
		case <-ctx.Done():
			return answers, ctx.Err()
		}
	}
}

// members reads the announcements of workers, and pings their processes.
func (s *surveyor) members(ctx context.Context) {
	ctx, cancel := s.ask(ctx)
	defer cancel()
	follow, done := context.WithCancel(ctx)
	defer done()
	var last []model.Member
	err := s.b.FollowMembers(follow, func(m model.Member) {
		last = slices.DeleteFunc(last, func(o model.Member) bool { return o.ID == m.ID })
		last = append(last, m)
	}, done)
	if ctx.Err() != nil || !errors.Is(err, context.Canceled) { // a subscription always ends with an error
		s.MembersUnseen = askError(cmp.Or(ctx.Err(), err))
		return
	}
	s.Members = make([]MemberFacts, len(last))
	var asking sync.WaitGroup
	for i, m := range last {
		f := &s.Members[i]
		*f = MemberFacts{ID: m.ID, Role: m.Role, Version: m.Version, Program: m.Program, Left: m.Left}
		if !m.Left && m.Role == "" || m.Role == model.RoleOrdered && !m.Leaving {
			asking.Go(func() { f.Answers, f.Unknown = s.b.Ping(ctx, m.ID) }) // ends with ctx
		}
	}
	asking.Wait()
	slices.SortFunc(s.Members, func(a, b MemberFacts) int { return cmp.Compare(a.ID, b.ID) })
}

// MemberFacts are about a process that has announced itself.
type MemberFacts struct {
	ID      string
	Role    string // "" for a worker
	Version string
	Program string // a worker's name for its programs, "" if it has none
	Left    bool   // it has announced its departure
	Answers bool   // its process answers
	Unknown error
}

// ServiceFacts are about a process of this deployment that answers requests. Endpoints are
// those that it serves, sorted.
type ServiceFacts struct {
	Name, Connection, Version string
	Endpoints                 []string
}

// services finds the processes that answer requests. Those of all deployments of the account respond; the
// subjects of a service's endpoints show its deployment.
func (s *surveyor) services(ctx context.Context) {
	answers, err := collect(ctx, s.b.Streams().NC, "$SRV.INFO", nil)
	if err != nil && !errors.Is(err, nats.ErrNoResponders) {
		s.ServicesUnseen = askError(err)
		return
	}
	for _, m := range answers {
		var info struct {
			Name      string
			Metadata  map[string]string
			Endpoints []struct{ Subject string }
		}
		if json.Unmarshal(m.Data, &info) != nil || !strings.HasPrefix(info.Name, "settle-") {
			continue
		}
		s.embedded(info.Metadata)
		f := ServiceFacts{Name: info.Name, Connection: info.Metadata["connection"], Version: info.Metadata[provision.MetaVersion]}
		for _, e := range info.Endpoints {
			if name, ours := strings.CutPrefix(e.Subject, s.b.Streams().Names.Endpoint("")); ours {
				f.Endpoints = append(f.Endpoints, name)
			}
		}
		if len(f.Endpoints) > 0 {
			slices.Sort(f.Endpoints)
			s.Services = append(s.Services, f)
		}
	}
	slices.SortFunc(s.Services, func(a, b ServiceFacts) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Connection, b.Connection))
	})
}

// embedded uses a process's report about its embedded server, unless the server has reported itself.
func (s *surveyor) embedded(says map[string]string) {
	i := slices.IndexFunc(s.Servers, func(f ServerFacts) bool { return f.ID != "" && f.ID == says[wire.MetaEmbeds] })
	if i < 0 || s.Servers[i].Disk != nil {
		return
	}
	interval, err := time.ParseDuration(says[wire.MetaSync])
	if always := says[wire.MetaSync] == wire.SyncAlways; always || err == nil {
		s.Servers[i].Disk = &DiskFacts{SyncAlways: always, SyncInterval: interval, ByProcess: true}
	}
}
