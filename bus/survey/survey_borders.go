package survey

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/bus/provision"
	"github.com/settlehq/settle/bus/roles"
)

// BorderFacts are what the servers report about the account of the streams.
type BorderFacts struct {
	// Unknown is why there are no facts.
	Unknown error
	// Excess are exports that the deployment does not need, and Public those that every account may import.
	Excess, Public []string
	// Guests are the clients that are connected to the account of the streams, "user U as NAME".
	Guests []string
}

// borders asks the servers about the account of this connection.
func (s *surveyor) borders(ctx context.Context) {
	if s.more.SystemCreds == "" && s.more.SystemUser == "" || s.JetStream != nil || s.User.Account == "" {
		return
	}
	s.Borders = &BorderFacts{}
	nc, err := s.dialSystem()
	if err == nil {
		defer nc.Close()
		err = s.askBorders(ctx, nc)
	}
	s.Borders.Unknown = err
}

func (s *surveyor) askBorders(ctx context.Context, nc *nats.Conn) error {
	var account struct {
		Data struct {
			Exports []struct {
				Subject  string   `json:"subject"`
				TokenReq bool     `json:"token_req"`
				Approved []string `json:"approved_accounts"`
			} `json:"exports"`
		} `json:"data"`
	}
	within, cancel := s.ask(ctx)
	defer cancel()
	m, err := nc.RequestWithContext(within, "$SYS.REQ.ACCOUNT."+s.User.Account+".INFO", nil)
	if err != nil {
		return fmt.Errorf("account %s: %w", s.User.Account, askError(err))
	}
	if err := json.Unmarshal(m.Data, &account); err != nil {
		return fmt.Errorf("account %s: %w", s.User.Account, err)
	}
	known := wire.SubjectRules{} // for any number of partitions: other streams do not exist
	for _, e := range roles.BorderOf(s.b.Prefix(), provision.MaxPartitions).Exports {
		known.Allow = append(known.Allow, e.Subject)
	}
	for _, e := range account.Data.Exports {
		if len(known.Lacks("", []string{e.Subject})) > 0 {
			s.Borders.Excess = append(s.Borders.Excess, e.Subject)
		}
		if !e.TokenReq && len(e.Approved) == 0 {
			s.Borders.Public = append(s.Borders.Public, e.Subject)
		}
	}
	return s.askGuests(ctx, nc)
}

// askGuests lists connections of clients.
func (s *surveyor) askGuests(ctx context.Context, nc *nats.Conn) error {
	question, err := json.Marshal(map[string]any{"auth": true, "acc": s.User.Account, "limit": mostGuests})
	if err != nil {
		return err
	}
	answers, err := collect(ctx, nc, "$SYS.REQ.SERVER.PING.CONNZ", question)
	if err != nil {
		return fmt.Errorf("connections: %w", askError(err))
	}
	for _, m := range answers {
		var reply struct {
			Data struct {
				Conns []struct {
					Name    string `json:"name"`
					User    string `json:"authorized_user"`
					Account string `json:"account"`
				} `json:"connections"`
			} `json:"data"`
		}
		if err := json.Unmarshal(m.Data, &reply); err != nil {
			return fmt.Errorf("connections: %w", err)
		}
		for _, c := range reply.Data.Conns {
			if guest := fmt.Sprintf("user %s as %q", c.User, c.Name); c.Account == s.User.Account && isGuest(c.Name) && !slices.Contains(s.Borders.Guests, guest) {
				s.Borders.Guests = append(s.Borders.Guests, guest)
			}
		}
	}
	slices.Sort(s.Borders.Guests)
	return nil
}

// mostGuests is how many connections each server lists.
const mostGuests = 1024

// tools are the names of connections of the command settle, which operators use.
var tools = []string{"client/settle", "client/provision", "client/restore", "client/clone", "client/plain"}

// isGuest reports whether the name of a connection is one of a client. The names are chosen by the clients: this finds mistakes, and no
// attackers.
func isGuest(connection string) bool {
	name, is := strings.CutPrefix(connection, "settle/")
	if !is {
		return !strings.HasPrefix(connection, "NATS CLI")
	}
	return strings.HasPrefix(name, "client/") && !slices.Contains(tools, name)
}
