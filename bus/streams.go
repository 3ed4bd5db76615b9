package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/settlehq/settle/model"
)

// streams stores messages in the streams of a deployment, and follows them. It remembers the newest known
// message of each: a store that has gone back to an earlier state is noticed, and what rests on the
// later state ends.
type streams struct {
	*link
	pub  *publisher
	past past

	// forgetRead is called when a stream has gone back, before anything is read anew, and reportRewind after that, on
	// a goroutine of its own. Either may be nil.
	forgetRead   func()
	reportRewind func(model.Rewind)
}

// open uses a connection. The caller closes the connection if that fails.
func (s *streams) open(nc *nats.Conn, api apiSettings, faults Faults) error {
	s.nc = nc
	if err := s.useAPI(api); err != nil {
		return err
	}
	var err error
	if s.pub, err = newPublisher(nc, s.ackTimeout, faults, &s.past, s.log, s.answersFor); err != nil {
		return fmt.Errorf("subscribe to acknowledgements: %w", err)
	}
	s.pub.suspect = s.suspect
	s.watchConnection()
	every := s.timing.pastCheck
	s.pub.running.Go(func() { s.comparePast(every) }) // ends with s.pub.ctx
	return nil
}

// Epoch returns how often the store was found to have gone back. See port.Bus.
func (s *streams) Epoch() uint64 { return s.past.now() }

// Rewinds returns, for each stream that was found to have gone back since the bus was connected, the last
// rewind, in the order of detection.
func (s *streams) Rewinds() []model.Rewind {
	s.past.mu.Lock()
	defer s.past.mu.Unlock()
	return slices.Clone(s.past.rewinds)
}

// Hindsight returns how long a leader may answer from an earlier state. See port.Bus.
func (s *streams) Hindsight() time.Duration {
	if s.clustered.Load() {
		return s.timing.pastLimit
	}
	return 0
}

// Refusal returns when the server last did not store a message, for lack of room or because of a failure,
// and why; the zero time if it never happened. It includes a server that answers other requests
// but no store requests.
func (s *streams) Refusal() (at time.Time, why string) {
	s.pub.mu.Lock()
	defer s.pub.mu.Unlock()
	return s.pub.refused.at, s.pub.refused.why
}

// unstored is when the server was last found not to store a message, and why: there was no room, it
// failed, or it did not answer.
type unstored struct {
	at  time.Time
	why string
}

// watchConnection reacts to events of the connection. The handlers run one
// at a time on a goroutine of the connection.
func (s *streams) watchConnection() {
	s.nc.SetDisconnectErrHandler(func(_ *nats.Conn, err error) {
		if err != nil || !s.nc.IsClosed() { // otherwise this bus has closed it
			s.log.Warn("disconnected from NATS; requests wait until it is back", "error", err)
		}
		s.past.suspectAll()
		s.pub.disconnected()
	})
	s.nc.SetReconnectHandler(func(nc *nats.Conn) {
		s.log.Info("reconnected to NATS", "server", nc.ConnectedUrlRedacted())
		if err := checkVersion(nc.ConnectedServerVersion()); err != nil {
			s.log.Error("reconnected to a server that is too old", "error", err)
		}
		s.pub.reconnected() // except requests that wait until their stream has been compared
		s.compareAll()
		s.reconnects.raise()
	})
	s.nc.SetClosedHandler(func(*nats.Conn) { s.end() })
	s.nc.SetErrorHandler(s.connectionError)
}

func (s *streams) connectionError(_ *nats.Conn, sub *nats.Subscription, err error) {
	if errors.Is(err, nats.ErrSlowConsumer) {
		s.faults.Warn("messages were dropped because they came faster than they were read; they are read again", sub.Subject, "subject", sub.Subject)
		return
	}
	s.faults.Warn("NATS reports an error", err.Error(), "error", err)
	if errors.Is(err, nats.ErrPermissionViolation) {
		s.denied.Store(&denial{time.Now(), err.Error()})
	}
	if subject := forbiddenSubject(err); subject != "" {
		s.pub.forbid(subject, err)
	}
}

// Close waits until requests in flight have their answers, at most for the
// acknowledgement timeout, ends the rest with model.ErrStopped and closes the
// connection. It must not be called from a callback.
func (s *streams) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), s.ackTimeout)
	defer cancel()
	s.pub.drain(ctx)
	s.end()
	s.nc.Close()
	s.pub.wait()
}

// Kill closes the connection at once, as the end of the process would, and ends
// everything with model.ErrStopped. It waits for nothing. It must not be called
// from a callback.
func (s *streams) Kill() {
	s.nc.Close()
	s.end()
}

// end notifies everything that the bus has ended.
func (s *streams) end() {
	s.stopOnce.Do(func() { close(s.stopped) })
	s.pub.stop()
}
