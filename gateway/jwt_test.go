package gateway_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/settlehq/settle/gateway"
)

// provider issues tokens.
type provider struct {
	t    *testing.T
	file string
	keys []ed25519.PrivateKey
}

func newProvider(t *testing.T) *provider {
	p := &provider{t: t, file: filepath.Join(t.TempDir(), "jwks.json")}
	p.rotate()
	return p
}

// rotate replaces the key of the provider.
func (p *provider) rotate() {
	p.t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		p.t.Fatal(err)
	}
	p.keys = append(p.keys, private)
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: public, KeyID: p.id(), Algorithm: "EdDSA", Use: "sig"}}}
	b, err := json.Marshal(set)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(p.file, b, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p *provider) id() string { return "k" + strings.Repeat("x", len(p.keys)) }

// token issues one with these claims.
func (p *provider) token(claims map[string]any) string {
	p.t.Helper()
	return signWith(p.t, jose.EdDSA, p.keys[len(p.keys)-1], p.id(), claims)
}

func signWith(t *testing.T, with jose.SignatureAlgorithm, key any, id string, claims map[string]any) string {
	t.Helper()
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: with, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", id))
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(s).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// A token that does not name its key is accepted if there is one for signatures, whatever others there are.
func TestJWT_AKeyForEncryptionIsNoneForSignatures(t *testing.T) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	h := issuedBy(t, jose.JSONWebKey{Key: private.Public(), KeyID: "sign", Use: "sig"}, jose.JSONWebKey{Key: secret.Public(), KeyID: "encrypt", Use: "enc"})
	claims := map[string]any{"iss": "i", "aud": "settle", "sub": "alice", "exp": time.Now().Add(time.Hour).Unix()}
	if got := sendAs(h, signWith(t, jose.EdDSA, private, "", claims)); got != http.StatusAccepted {
		t.Errorf("a token that names no key: status %d", got)
	}
	if got := sendAs(h, signWith(t, jose.RS256, secret, "encrypt", claims)); got != http.StatusUnauthorized {
		t.Errorf("a token that is signed with the key for encryption: status %d", got)
	}
}

// issuedBy returns the handler of a gateway for tokens of an issuer with these keys.
func issuedBy(t *testing.T, keys ...jose.JSONWebKey) http.Handler {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	file := write("principals.json", map[string]any{
		"jwt":        map[string]string{"jwks_file": write("jwks.json", jose.JSONWebKeySet{Keys: keys}), "issuer": "i", "audience": "settle"},
		"principals": []any{map[string]any{"name": "alice", "send": []string{"*/add"}}},
	})
	g, err := gateway.Listen(gateway.Config{Addr: "127.0.0.1:0", Principals: file})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g.Handler(empty{}, &ingress{})
}

// sendAs sends an event with a token, and returns the status of the answer.
func sendAs(h http.Handler, token string) int {
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/v1/spaces/s/streams/add", strings.NewReader("1"))
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

// A key is for one algorithm, and a token names its key if the provider has several: none is tried that the token does not name.
func TestJWT_AKeyIsForOneAlgorithm(t *testing.T) {
	first, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, second, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	h := issuedBy(t, jose.JSONWebKey{Key: first.Public(), KeyID: "first", Algorithm: "RS256", Use: "sig"}, jose.JSONWebKey{Key: second.Public(), KeyID: "second", Algorithm: "EdDSA"})
	claims := map[string]any{"iss": "i", "aud": "settle", "sub": "alice", "exp": time.Now().Add(time.Hour).Unix()}
	for what, c := range map[string]struct { // any order: each on its own
		token string
		want  int
	}{
		"the first key":               {signWith(t, jose.RS256, first, "first", claims), http.StatusAccepted},
		"the second key":              {signWith(t, jose.EdDSA, second, "second", claims), http.StatusAccepted},
		"another algorithm":           {signWith(t, jose.PS256, first, "first", claims), http.StatusUnauthorized},
		"the name of the other key":   {signWith(t, jose.RS256, first, "second", claims), http.StatusUnauthorized},
		"no name of a key":            {signWith(t, jose.EdDSA, second, "", claims), http.StatusUnauthorized},
		"the name of a key not there": {signWith(t, jose.EdDSA, second, "third", claims), http.StatusUnauthorized},
	} {
		if got := sendAs(h, c.token); got != c.want {
			t.Errorf("%s: status %d, want %d", what, got, c.want)
		}
	}
}

// A token of an identity provider stands for the principal in it, if one of the provider's keys has signed it, it is for this
// gateway, and it is valid now.
func TestJWT_ATokenStandsForItsPrincipal(t *testing.T) {
	p := newProvider(t)
	file := filepath.Join(t.TempDir(), "principals.json")
	text := `{"jwt": {"jwks_file": "` + p.file + `", "issuer": "https://id.example", "audience": "settle"},
		"principals": [{"name": "alice", "send": ["*/add"]}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	g, err := gateway.Listen(gateway.Config{Addr: "127.0.0.1:0", Principals: file})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	in := &ingress{}
	h := g.Handler(empty{}, in)
	status := func(token string) int { return sendAs(h, token) }
	in1h, ago := time.Now().Add(time.Hour).Unix(), time.Now().Add(-time.Hour).Unix()
	good := func() map[string]any {
		return map[string]any{"iss": "https://id.example", "aud": []string{"other", "settle"}, "sub": "alice", "exp": in1h}
	}
	but := func(name string, value any) map[string]any {
		c := good()
		if c[name] = value; value == nil {
			delete(c, name)
		}
		return c
	}
	if got := status(p.token(good())); got != http.StatusAccepted || len(in.events) != 1 || in.events[0].By != "alice" {
		t.Fatalf("a good token: status %d, %+v", got, in.events)
	}
	public := p.keys[0].Public().(ed25519.PublicKey)
	_, other, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	unsigned := "eyJhbGciOiJub25lIn0." + strings.Split(p.token(good()), ".")[1] + "."
	for what, c := range map[string]struct { // any order: each on its own
		token string
		want  int
	}{
		"another issuer":                  {p.token(but("iss", "https://evil.example")), http.StatusUnauthorized},
		"another audience":                {p.token(but("aud", "other")), http.StatusUnauthorized},
		"no audience":                     {p.token(but("aud", nil)), http.StatusUnauthorized},
		"expired":                         {p.token(but("exp", ago)), http.StatusUnauthorized},
		"without an end":                  {p.token(but("exp", nil)), http.StatusUnauthorized},
		"not valid yet":                   {p.token(but("nbf", in1h)), http.StatusUnauthorized},
		"no principal":                    {p.token(but("sub", nil)), http.StatusUnauthorized},
		"a principal that is no name":     {p.token(but("sub", "a.b")), http.StatusUnauthorized},
		"another key":                     {signWith(t, jose.EdDSA, other, p.id(), good()), http.StatusUnauthorized},
		"a key that there is not":         {signWith(t, jose.EdDSA, p.keys[0], "other", good()), http.StatusUnauthorized},
		"the public key used as a secret": {signWith(t, jose.HS256, []byte(public), p.id(), good()), http.StatusUnauthorized},
		"unsigned":                        {unsigned, http.StatusUnauthorized},
		"changed":                         {p.token(good()) + "A", http.StatusUnauthorized},
		"the name of operators":           {p.token(but("sub", "operator")), http.StatusUnauthorized},
		"no token":                        {"a.b.c", http.StatusUnauthorized},
		"a principal without rights":      {p.token(but("sub", "bob")), http.StatusForbidden},
	} {
		if got := status(c.token); got != c.want {
			t.Errorf("%s: status %d, want %d", what, got, c.want)
		}
	}
	before := p.token(good())
	p.rotate()
	if got := status(before); got != http.StatusUnauthorized {
		t.Errorf("a token that is signed with a key that was replaced: status %d", got)
	}
	if got := status(p.token(good())); got != http.StatusAccepted {
		t.Errorf("with the new key: status %d", got)
	}
}

func TestJWT_AFileThatIsWrongIsRefusedAtTheStart(t *testing.T) {
	p := newProvider(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	secret := write("secret.json", `{"keys":[{"kty":"oct","k":"AAAA","kid":"1"}]}`)
	private, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: p.keys[0], KeyID: "1"}}})
	if err != nil {
		t.Fatal(err)
	}
	for what, entry := range map[string]string{ // any order: each on its own
		"a private key":      `{"jwks_file": "` + write("private.json", string(private)) + `", "issuer": "i", "audience": "a"}`,
		"without keys":       `{"issuer": "i", "audience": "a"}`,
		"without an issuer":  `{"jwks_file": "` + p.file + `", "audience": "a"}`,
		"without audience":   `{"jwks_file": "` + p.file + `", "issuer": "i"}`,
		"no such file":       `{"jwks_file": "` + filepath.Join(dir, "none") + `", "issuer": "i", "audience": "a"}`,
		"no key set":         `{"jwks_file": "` + write("bad.json", "[]") + `", "issuer": "i", "audience": "a"}`,
		"an empty key set":   `{"jwks_file": "` + write("empty.json", `{"keys":[]}`) + `", "issuer": "i", "audience": "a"}`,
		"a secret key":       `{"jwks_file": "` + secret + `", "issuer": "i", "audience": "a"}`,
		"an unknown setting": `{"jwks_file": "` + p.file + `", "issuer": "i", "audience": "a", "url": "https://x"}`,
	} {
		file := write("principals.json", `{"jwt": `+entry+`, "principals": []}`)
		g, err := gateway.Listen(gateway.Config{Addr: "127.0.0.1:0", Principals: file})
		if err == nil {
			g.Close()
			t.Errorf("%s: it is accepted", what)
		}
	}
}
