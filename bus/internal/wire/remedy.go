package wire

import (
	"crypto/x509"
	"errors"
	"io/fs"
	"net"

	"github.com/nats-io/nats.go"
)

// RemoteError is the Op of a net.OpError that is a TLS alert from the other side, for which crypto/tls has no type.
const RemoteError = "remote error"

// Remedy returns what to do about a connection that could not be made.
func Remedy(err error) string {
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var file *fs.PathError
	var remote *net.OpError
	switch {
	case errors.As(err, &authority):
		return "name the file with the certificate of the authority that signed the server's: NATS_CA, or ca in the nats context"
	case errors.As(err, &name):
		return "connect to a name that the server's certificate is for, or issue it one for this name"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the server needs a new certificate, unless the clock of this machine is wrong"
	case errors.Is(err, nats.ErrSecureConnWanted):
		return "the server offers no TLS: remove the authority (NATS_CA, or ca in the nats context) and tls:// from the URL, or configure TLS at the server"
	case errors.As(err, &remote) && remote.Op == RemoteError:
		return "the server refuses the certificate of this client: name one that its authority has signed, and its key, in NATS_CERT and NATS_KEY"
	case errors.Is(err, nats.ErrTLS): // cut off after the handshake, in which the client was not told of a refusal yet
		return "the server may have refused the certificate of this client: see its log, and name one that its authority has signed, and its key, in NATS_CERT and NATS_KEY"
	case errors.As(err, &file):
		return "check the path"
	case errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAccountAuthExpired):
		return "the credentials have expired: issue new ones, and name their file in NATS_CREDS"
	case errors.Is(err, nats.ErrAuthRevoked):
		return "the credentials have been revoked: issue new ones, and name their file in NATS_CREDS"
	case errors.Is(err, nats.ErrAuthorization):
		return "the server refuses the user: check NATS_USER and NATS_PASSWORD, NATS_CREDS, NATS_NKEY, NATS_TOKEN or the nats context"
	}
	return "check NATS_URL or the nats context"
}

// isRefusal reports whether a server has refused or ended a connection because of its credentials.
func isRefusal(err error) bool {
	return errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) || errors.Is(err, nats.ErrAuthRevoked) || errors.Is(err, nats.ErrAccountAuthExpired)
}
