package wire

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus/faults"
	"github.com/settlehq/settle/internal/devserver"
	"github.com/settlehq/settle/model"
)

// Streams stores messages in the streams of a deployment, and follows them. It remembers the newest known
// message of each: a store that has gone back to an earlier state is noticed, and what rests on the
// later state ends.
type Streams struct {
	*Link
	Pub  *publisher
	Past past

	// ForgetRead is called when a stream has gone back, before anything is read again, and reportRewind after
	// that, on its own goroutine. Either may be nil.
	ForgetRead   func()
	ReportRewind func(model.Rewind)
}

// Open uses a connection. The caller closes the connection if that fails.
func (s *Streams) Open(nc *nats.Conn, api APISettings, faults faults.Func) error {
	s.NC = nc
	if err := s.useAPI(api); err != nil {
		return err
	}
	var err error
	if s.Pub, err = newPublisher(nc, s.AckTimeout, faults, &s.Past, s.Log, s.answersFor); err != nil {
		return fmt.Errorf("subscribe to acknowledgements: %w", err)
	}
	s.Pub.suspect = s.Suspect
	s.watchConnection()
	return nil
}

// Begin begins to compare the streams with what is remembered of them, until the connection is closed.
func (s *Streams) Begin() {
	every := s.Timing.PastCheck
	s.Pub.running.Go(func() { s.comparePast(every) }) // ends with s.pub.ctx
}

// Now returns how often the store was found to have gone back.
func (s *Streams) Now() uint64 { return s.Past.Now() }

// StaleWindow returns how long a leader may answer from an earlier state.
func (s *Streams) StaleWindow() time.Duration {
	if s.Clustered.Load() {
		return s.Timing.PastLimit
	}
	return 0
}

// unstored is when the server was last found not to store a message, and why: there was no room, it
// failed, or it did not answer.
type unstored struct {
	at  time.Time
	why string
}

// watchConnection reacts to events of the connection. The handlers run one
// at a time on a goroutine of the connection.
func (s *Streams) watchConnection() {
	s.NC.SetDisconnectErrHandler(func(_ *nats.Conn, err error) {
		if err != nil || !s.NC.IsClosed() { // otherwise this bus has closed it
			s.Log.Warn("disconnected from NATS; requests wait until it is back", "error", err)
		}
		s.Past.SuspectAll()
		s.Pub.disconnected()
	})
	first := s.NC.ConnectedServerName()
	s.NC.SetReconnectHandler(func(nc *nats.Conn) {
		if now := nc.ConnectedServerName(); devserver.IsName(first) && devserver.IsName(now) && now != first {
			// It would perform the tasks of another project, and compare that project's streams with what it remembers.
			s.Log.Error("settle dev of another directory has this address now; the connection ends", "server", nc.ConnectedUrlRedacted())
			s.end()
			nc.Close()
			return
		}
		s.Log.Info("reconnected to NATS", "server", nc.ConnectedUrlRedacted())
		if err := CheckVersion(nc.ConnectedServerVersion()); err != nil {
			s.Log.Error("reconnected to a server that is too old", "error", err)
		}
		s.Pub.reconnected() // except requests that wait until their stream has been compared
		s.CompareAll()
		s.Reconnects.raise()
	})
	s.NC.SetClosedHandler(func(*nats.Conn) { s.end() })
	s.NC.SetErrorHandler(s.connectionError)
}

func (s *Streams) connectionError(_ *nats.Conn, sub *nats.Subscription, err error) {
	if errors.Is(err, nats.ErrSlowConsumer) {
		s.Faults.Warn("messages were dropped because they came faster than they were read; they are read again", sub.Subject, "subject", sub.Subject)
		return
	}
	if isRefusal(err) {
		s.Faults.Warn("the server refuses this process; requests wait until it accepts the credentials, which are read again for each attempt", err.Error(), "error", err, "remedy", Remedy(err))
		return
	}
	s.Faults.Warn("NATS reports an error", err.Error(), "error", err)
	if errors.Is(err, nats.ErrPermissionViolation) {
		s.denied.Store(&denial{time.Now(), err.Error()})
	}
	if subject := forbiddenSubject(err); subject != "" {
		s.Pub.forbid(subject, err)
	}
}

// Close waits until requests in flight have their answers, at most for the
// acknowledgement timeout, ends the rest with model.ErrStopped and closes the
// connection. It must not be called from a callback.
func (s *Streams) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), s.AckTimeout)
	defer cancel()
	s.Pub.drain(ctx)
	s.end()
	s.NC.Close()
	s.Pub.wait()
}

// Kill closes the connection at once, as the end of the process would, and ends
// everything with model.ErrStopped. It waits for nothing. It must not be called
// from a callback.
func (s *Streams) Kill() {
	s.NC.Close()
	s.end()
}

// end notifies everything that the bus has ended.
func (s *Streams) end() {
	s.stopOnce.Do(func() { close(s.Stopped) })
	s.Pub.stop()
}
