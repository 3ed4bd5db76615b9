package gateway_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/access"
	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/live"
)

// beating is a source whose watches have a heartbeat in each second.
type beating struct{ empty }

func (beating) Watch(ctx context.Context, _ live.Watch, deliver func(live.Event) error) error {
	for {
		if err := deliver(live.Event{Kind: live.Beating}); err != nil {
			return err
		}
		select {
		case <-time.After(live.Heartbeat):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// patient is a writer that can do what a watch needs.
type patient struct{ *httptest.ResponseRecorder }

func (patient) SetWriteDeadline(time.Time) error { return nil }

// An open watch ends when its right does: with the rule, with the token or its principal in the file, and with the time of a
// token that was issued elsewhere. A new request is refused then.
func TestWatch_EndsWithTheRightToIt(t *testing.T) {
	for name, c := range map[string]struct { // any order: each on its own
		token    func(*provider) string
		withdraw func(t *testing.T, change func(principals string), rule func(read ...string))
		within   time.Duration
		then     int
	}{
		"a rule": {
			token:    func(*provider) string { return "a" },
			withdraw: func(_ *testing.T, _ func(string), rule func(...string)) { rule() },
			within:   2 * time.Second, then: http.StatusForbidden,
		},
		"the file": {
			token:    func(*provider) string { return "a" },
			withdraw: func(_ *testing.T, change func(string), _ func(...string)) { change("") },
			within:   2 * time.Second, then: http.StatusUnauthorized,
		},
		"the time of the token": {
			token: func(p *provider) string {
				return p.token(map[string]any{"iss": "i", "aud": "settle", "sub": "alice", "exp": time.Now().Add(10 * time.Second).Unix()})
			},
			withdraw: func(*testing.T, func(string), func(...string)) {},
			within:   10*time.Second + time.Minute + 2*time.Second, then: http.StatusUnauthorized,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := membus.NewServer(membus.Config{Partitions: 1})
				bus := server.Connect("rules")
				defer bus.Close()
				book, err := access.Open(t.Context(), bus, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer book.Close()
				rule := func(read ...string) {
					if _, err := access.Change(t.Context(), bus, "alice", func(r *access.Rule) { r.Read = read }); err != nil {
						t.Fatal(err)
					}
				}
				p, file := newProvider(t), filepath.Join(t.TempDir(), "principals.json")
				change := func(principals string) {
					text := `{"jwt": {"jwks_file": "` + p.file + `", "issuer": "i", "audience": "settle"}, "principals": [` + principals + `]}`
					if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				sum := sha256.Sum256([]byte("a"))
				change(`{"name": "alice", "tokens_sha256": ["` + hex.EncodeToString(sum[:]) + `"], "read": ["s/*"]}`)
				rule("s/*")
				g, err := gateway.Listen(gateway.Config{Addr: "127.0.0.1:0", Principals: file, Access: book})
				if err != nil {
					t.Fatal(err)
				}
				defer g.Close()
				h, token := g.Handler(beating{}, nil), c.token(p)
				ask := func(ctx context.Context, path string) *httptest.ResponseRecorder {
					r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1"+path, strings.NewReader(""))
					r.Header.Set("Authorization", "Bearer "+token)
					w := httptest.NewRecorder()
					h.ServeHTTP(patient{w}, r)
					return w
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				ended := make(chan int, 1)
				go func() { ended <- ask(ctx, "/v1/spaces/s/documents/n/watch").Code }()
				time.Sleep(5 * time.Second)
				synctest.Wait()
				select {
				case code := <-ended:
					t.Fatalf("the watch has ended, status %d", code)
				default:
				}
				began := time.Now()
				c.withdraw(t, change, rule)
				<-ended
				if took := time.Since(began); took > c.within {
					t.Errorf("the watch goes on for %v", took)
				}
				if got := ask(ctx, "/v1/spaces/s/documents/n").Code; got != c.then {
					t.Errorf("a get then: status %d, want %d", got, c.then)
				}
			})
		})
	}
}
