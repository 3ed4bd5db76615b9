package gateway

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificate is a certificate with its key in two files, which are read again after they change: certificates
// are replaced every few weeks, and watches last longer.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu      sync.Mutex
	stamp   [2]time.Time // when the files were written from which current was read, or that could not be read
	current *tls.Certificate
}

func newCertificate(certFile, keyFile string, log *slog.Logger) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log}
	c.stamp = c.stamps()
	read, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("HTTP certificate %s with key %s: %w", certFile, keyFile, err)
	}
	c.current = &read
	return c, nil
}

// stamps returns when the two files were written, the zero time for one that is missing.
func (c *certificate) stamps() (s [2]time.Time) {
	for i, file := range [...]string{c.certFile, c.keyFile} {
		if info, err := os.Stat(file); err == nil {
			s[i] = info.ModTime()
		}
	}
	return s
}

// get returns the certificate for a new connection. If the files have changed and are not a pair, as between the
// writing of one and the other, the earlier certificate remains in use.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	stamp := c.stamps()
	if stamp == c.stamp {
		return c.current, nil
	}
	c.stamp = stamp
	read, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		c.log.Warn("the changed HTTP certificate cannot be used; the earlier one remains in use until the files change again", "cert_file", c.certFile, "key_file", c.keyFile, "error", err)
		return c.current, nil
	}
	c.current = &read
	c.log.Info("HTTP certificate replaced", "cert_file", c.certFile)
	return c.current, nil
}
