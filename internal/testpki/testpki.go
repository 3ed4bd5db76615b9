// Package testpki issues certificates for tests: a certificate authority with servers and clients, as files
// in PEM, the form in which NATS and HTTP servers take them.
package testpki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority is a certificate authority.
type Authority struct {
	// File is the path of its certificate.
	File string
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	next int64
}

// Pair names the files of a certificate and its key.
type Pair struct{ Cert, Key string }

// validity is how long certificates of tests are valid. Those that have expired ended this long ago.
const validity = time.Hour

// NewAuthority returns an authority whose files are removed when the test ends.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{dir: t.TempDir(), next: 1}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Settle test authority"},
		NotBefore: now.Add(-3 * validity), NotAfter: now.Add(validity),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.File = filepath.Join(a.dir, "ca.pem")
	writePEM(t, a.File, "CERTIFICATE", der)
	return a
}

// Issue returns a certificate for servers at the given addresses and names, and for a client of the name.
func (a *Authority) Issue(t testing.TB, name string, hosts ...string) Pair {
	t.Helper()
	p := Pair{Cert: filepath.Join(a.dir, name+".pem"), Key: filepath.Join(a.dir, name+".key")}
	now := time.Now()
	a.write(t, p, name, hosts, now.Add(-validity), now.Add(validity))
	return p
}

// IssueExpired is Issue for a certificate that is no longer valid.
func (a *Authority) IssueExpired(t testing.TB, name string, hosts ...string) Pair {
	t.Helper()
	p := Pair{Cert: filepath.Join(a.dir, name+".pem"), Key: filepath.Join(a.dir, name+".key")}
	now := time.Now()
	a.write(t, p, name, hosts, now.Add(-2*validity), now.Add(-validity))
	return p
}

func (a *Authority) write(t testing.TB, p Pair, name string, hosts []string, from, to time.Time) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a.next++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.next), Subject: pkix.Name{CommonName: name},
		NotBefore: from, NotAfter: to, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, p.Key, "PRIVATE KEY", secret)
	writePEM(t, p.Cert, "CERTIFICATE", der)
}

func writePEM(t testing.TB, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
