package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/settlehq/settle/model"
)

// issuerEntry is the part of the file of principals about tokens that an identity provider issues (JWT).
type issuerEntry struct {
	// Keys is the path of a JSON Web Key Set with the public keys of the issuer, read again when it changes.
	Keys string `json:"jwks_file"`
	// Issuer and Audience are what a token has to have in iss and aud.
	Issuer   string `json:"issuer"`
	Audience string `json:"audience"`
	// Claim is the claim with the name of the principal; default sub.
	Claim string `json:"principal_claim"`
}

// fill checks an entry, and replaces its zero fields by the defaults.
func (e *issuerEntry) fill() error {
	switch {
	case e.Keys == "":
		return errors.New("jwt: name the file with the public keys: jwks_file")
	case e.Issuer == "" || e.Audience == "":
		return errors.New("jwt: give issuer and audience: without them, a token for another service would be accepted")
	}
	if e.Claim == "" {
		e.Claim = "sub"
	}
	return nil
}

// signed are the algorithms that a token may be signed with: those with a public key. With the others, a public key that
// is used as a secret would make tokens.
var signed = []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA}

// leeway is how far the clocks of the issuer and of this machine may be apart.
const leeway = time.Minute

// issuer accepts tokens of an identity provider.
type issuer struct {
	issuerEntry
	keys jose.JSONWebKeySet
}

func newIssuer(e issuerEntry) (*issuer, error) {
	text, err := os.ReadFile(e.Keys)
	if err != nil {
		return nil, fmt.Errorf("jwt: %w", err)
	}
	is := &issuer{issuerEntry: e}
	if err := json.Unmarshal(text, &is.keys); err != nil {
		return nil, fmt.Errorf("jwt: %s is no JSON Web Key Set: %w", e.Keys, err)
	}
	for i := range is.keys.Keys {
		k := &is.keys.Keys[i]
		if !k.Valid() || !k.IsPublic() {
			return nil, fmt.Errorf("jwt: key %d of %s is no public key; a secret key must not be there", i+1, e.Keys)
		}
	}
	if len(is.keys.Keys) == 0 {
		return nil, fmt.Errorf("jwt: %s has no keys", e.Keys)
	}
	return is, nil
}

// looksIssued reports whether a token has the form of a JWT.
func looksIssued(token string) bool { return strings.Count(token, ".") == 2 }

// principal returns the name in a token that is valid now.
func (is *issuer) principal(token string, now time.Time) (string, error) {
	t, err := jwt.ParseSigned(token, signed)
	if err != nil {
		return "", err
	}
	var claims jwt.Claims
	all := map[string]any{}
	if err := is.verified(t, &claims, &all); err != nil {
		return "", err
	}
	if claims.Expiry == nil {
		return "", errors.New("the token does not expire")
	}
	if err := claims.ValidateWithLeeway(jwt.Expected{Issuer: is.Issuer, AnyAudience: jwt.Audience{is.Audience}, Time: now}, leeway); err != nil {
		return "", err
	}
	name, _ := all[is.Claim].(string)
	if err := model.CheckPrincipal(name); err != nil {
		return "", fmt.Errorf("claim %s: %w", is.Claim, err)
	}
	return name, nil
}

// verified reads the claims if the key that the token names has signed it, with the algorithm that the key is for. A token that names no key is accepted
// if there is one only.
func (is *issuer) verified(t *jwt.JSONWebToken, into ...any) error {
	if len(t.Headers) != 1 {
		return errors.New("the token has several signatures, or none")
	}
	keys := slices.DeleteFunc(slices.Clone(is.keys.Keys), func(k jose.JSONWebKey) bool { return k.Use != "" && k.Use != "sig" })
	if id := t.Headers[0].KeyID; id != "" {
		keys = slices.DeleteFunc(keys, func(k jose.JSONWebKey) bool { return k.KeyID != id })
	} else if len(keys) > 1 {
		return errors.New("the token does not name its key, and the issuer has several")
	}
	err := errors.New("no key for signatures has the id that the token names")
	for i := range keys {
		if meant := keys[i].Algorithm; meant != "" && meant != t.Headers[0].Algorithm {
			err = fmt.Errorf("the key is for %s, the token is signed with %s", meant, t.Headers[0].Algorithm)
			continue
		}
		if err = t.Claims(keys[i].Key, into...); err == nil {
			return nil
		}
	}
	return err
}

// stampOf identifies a version of the files that the principals come from.
func (p *principals) stampOf() string {
	var b bytes.Buffer
	for _, file := range []string{p.file, p.keysFile} {
		if info, err := os.Stat(file); file != "" && err == nil {
			fmt.Fprintf(&b, "%s %d %d\n", file, info.ModTime().UnixNano(), info.Size())
		}
	}
	return b.String()
}
