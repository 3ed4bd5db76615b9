package gateway

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/settlehq/settle/model"
)

// Defaults of the limits of a principal.
const (
	defaultRate    = 100
	defaultAtATime = 64
	defaultWatches = 64
)

// principal is an entry of the file of principals: a program or a person that uses the gateway, with what it may do.
type principal struct {
	// Name is part of the ids of the events that it sends, and what handlers see as Event.By.
	Name string `json:"name"`
	// Tokens are the SHA-256 sums of its tokens, in hexadecimal. With two of them, a token is replaced without a moment
	// in which neither is accepted.
	Tokens []string `json:"tokens_sha256"`
	// Send and Read are what it may send and read: patterns of space/stream and of space/document, in which * stands for
	// any characters of a name. With rules in the deployment, an entry with neither leaves both to them.
	Send []string `json:"send"`
	Read []string `json:"read"`
	// Operate are the spaces that it may change other than by events, on pages: patterns of names, * for the whole deployment.
	Operate []string `json:"operate"`
	// Rate is the number of requests per second, AtATime that of concurrent gets and sends, and Watches that of open
	// watches. 0 stands for the default.
	Rate    float64 `json:"requests_per_second"`
	AtATime int     `json:"requests_at_a_time"`
	Watches int     `json:"watches"`
}

// fill checks an entry and replaces its zero limits by the defaults. issued reports that it may have a token from elsewhere.
func (p *principal) fill(issued bool) error {
	if err := model.CheckPrincipal(p.Name); err != nil {
		return err
	}
	if len(p.Tokens) == 0 && !issued {
		return errors.New("it has no token: give tokens_sha256, such as the output of `printf %s TOKEN | sha256sum`")
	}
	for _, t := range p.Tokens {
		if sum, err := hex.DecodeString(t); err != nil || len(sum) != sha256.Size {
			return errors.New("an entry of tokens_sha256 is not a SHA-256 sum: it has 64 hexadecimal digits")
		}
	}
	for _, all := range [][]string{p.Send, p.Read} {
		for _, pattern := range all {
			if strings.Count(pattern, "/") != 1 || strings.ContainsAny(pattern, `?[]\`) {
				return fmt.Errorf("%q is no pattern: use SPACE/STREAM in send and SPACE/DOCUMENT in read, with * for any characters", pattern)
			}
		}
	}
	for _, pattern := range p.Operate {
		if pattern == "" || strings.ContainsAny(pattern, `/?[]\`) {
			return fmt.Errorf("%q is no pattern: use SPACE in operate, with * for any characters", pattern)
		}
	}
	if p.Rate < 0 || p.AtATime < 0 || p.Watches < 0 {
		return errors.New("a limit is negative")
	}
	if p.Rate == 0 {
		p.Rate = defaultRate
	}
	if p.AtATime == 0 {
		p.AtATime = defaultAtATime
	}
	if p.Watches == 0 {
		p.Watches = defaultWatches
	}
	return nil
}

// may reports whether one of the patterns covers a name in a space.
func may(patterns []string, space, name string) bool {
	for _, p := range patterns {
		if ok, err := path.Match(p, space+"/"+name); ok && err == nil { // a name has no slash
			return true
		}
	}
	return false
}

// mayAll reports whether one of the patterns covers all names in a space.
func mayAll(patterns []string, space string) bool {
	for _, p := range patterns {
		of, all := strings.CutSuffix(p, "/*")
		if ok, err := path.Match(of, space); all && ok && err == nil {
			return true
		}
	}
	return false
}

// principals are those of a file, which is read again after it changes.
type principals struct {
	file string
	log  *slog.Logger

	mu       sync.Mutex
	stamp    string // of the files that were read last
	byToken  map[[sha256.Size]byte]*caller
	byName   map[string]*caller
	issuer   *issuer           // nil if no tokens are issued elsewhere
	keysFile string            // of the issuer, "" for none
	usage    map[string]*usage // by name, for as long as the process runs
}

func newPrincipals(file string, log *slog.Logger) (*principals, error) {
	p := &principals{file: file, log: log, usage: map[string]*usage{}}
	if err := p.read(); err != nil {
		return nil, fmt.Errorf("file of principals %s: %w", file, err)
	}
	return p, nil
}

// read reads the file. Its stamp is from before, so that a change in between is noticed.
func (p *principals) read() error {
	p.stamp = p.stampOf()
	text, err := os.ReadFile(p.file)
	if err != nil {
		return err
	}
	var list struct {
		Principals []principal  `json:"principals"`
		JWT        *issuerEntry `json:"jwt"`
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&list); err != nil {
		return fmt.Errorf("%w; it is {\"principals\": [{\"name\": ...}]}", err)
	}
	if d.More() {
		return errors.New("there is more after the object")
	}
	var from *issuer
	if list.JWT != nil {
		if err := list.JWT.fill(); err != nil {
			return err
		}
		if p.keysFile != list.JWT.Keys {
			p.keysFile = list.JWT.Keys
			p.stamp = p.stampOf()
		}
		if from, err = newIssuer(*list.JWT); err != nil {
			return err
		}
	}
	byToken, byName := map[[sha256.Size]byte]*caller{}, map[string]*caller{}
	for i := range list.Principals {
		e := &list.Principals[i]
		if err := e.fill(from != nil); err != nil {
			return fmt.Errorf("entry %d (%s): %w", i+1, e.Name, err)
		}
		if byName[e.Name] != nil {
			return fmt.Errorf("entry %d: principal %s is there twice", i+1, e.Name)
		}
		c := &caller{principal: e, usage: p.usageOf(e)}
		byName[e.Name] = c
		for _, t := range e.Tokens {
			var sum [sha256.Size]byte
			_, _ = hex.Decode(sum[:], []byte(t)) // fill has checked it
			if other := byToken[sum]; other != nil {
				return fmt.Errorf("principals %s and %s have the same token", other.principal.Name, e.Name)
			}
			byToken[sum] = c
		}
	}
	p.byToken, p.byName, p.issuer = byToken, byName, from
	return nil
}

// usageOf returns what a principal uses now, which a new version of the file does not reset.
func (p *principals) usageOf(e *principal) *usage {
	limit, burst := rate.Limit(e.Rate), max(1, int(e.Rate))
	u := p.usage[e.Name]
	if u == nil {
		u = &usage{rate: rate.NewLimiter(limit, burst)}
		p.usage[e.Name] = u
	}
	u.rate.SetLimit(limit)
	u.rate.SetBurst(burst)
	return u
}

// of returns the principal with a token, nil if there is none. A changed file that is wrong is logged once, and the
// earlier one remains in use.
func (p *principals) of(token string) *caller {
	c, from := p.known(token)
	if c != nil || from == nil || !looksIssued(token) {
		return c
	}
	name, err := from.principal(token, time.Now()) // without the lock: any client can make a token that takes long to refuse
	if err != nil {
		return nil
	}
	return p.named(name)
}

// known returns the principal with a token of the file, and the issuer of others.
func (p *principals) known(token string) (*caller, *issuer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := p.stampOf(); at != p.stamp {
		err := p.read()
		if err != nil {
			p.log.Warn("the changed file of principals cannot be used; the earlier one remains in use until the file changes again", "file", p.file, "error", err)
		} else {
			p.log.Info("principals replaced", "file", p.file)
		}
	}
	return p.byToken[sha256.Sum256([]byte(token))], p.issuer
}

// named returns the principal with a name that the issuer vouches for.
func (p *principals) named(name string) *caller {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.byName[name]
	if c == nil { // what it may do is for the rules of the deployment to say
		e := &principal{Name: name}
		_ = e.fill(true) // the name was checked
		c = &caller{principal: e, usage: p.usageOf(e)}
		p.byName[name] = c
	}
	return c
}
