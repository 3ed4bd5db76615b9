package streamcopy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server/archive"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/bus/provision"
	"github.com/settlehq/settle/bus/roles"
)

// Stages of a restore: until it opens the streams, no client can have stored anything.
const (
	stageCopying = "copying"
	stageOpening = "opening"
)

// oldestRestorer is the first version of nats-server that restores messages with their sequences.
var oldestRestorer = [3]int{2, 15, 0}

// Restorer fills a new deployment with the messages of a backup. The deployment cannot be used
// before Finish.
type Restorer struct {
	b     *bus.Bus
	id    string // of the backup
	token string // of this restore
	only  string // the one stream that is restored, "" for all
	// Resumed: an earlier restore of the same backup had copied everything, and Open is next.
	Resumed bool
}

// BeginRestore connects, and makes sure that there is no deployment of cfg.Prefix, or only the remains of an
// interrupted restore. It removes those, unless everything was copied. cfg has the
// number of partitions and the horizon.
func BeginRestore(ctx context.Context, cfg bus.Config, backup string) (*Restorer, error) {
	b, err := bus.Dial(cfg)
	if err != nil {
		return nil, err
	}
	r := &Restorer{b: b, id: backup, token: nuid.Next()}
	if err := r.begin(ctx); err != nil {
		b.Kill()
		return nil, err
	}
	return r, nil
}

func (r *Restorer) begin(ctx context.Context) error {
	if err := r.canKeepSequences(); err != nil {
		return err
	}
	if err := r.b.Provisioner.Choose(provision.Settings{}); err != nil {
		return err
	}
	if err := r.b.Streams().MayPublish(ctx, "a restore", roles.Administrator, r.needs()...); err != nil {
		return err
	}
	mark, there, err := r.mark(ctx)
	switch {
	case err != nil:
		return err
	case there && mark == "":
		return fmt.Errorf("there is a deployment with prefix %s on this server already; a backup is restored where there is none: use another server or account, or delete the streams %s_* and KV_%s_* first",
			r.b.Prefix(), r.b.Streams().Names.Upper, r.b.Streams().Names.Upper)
	}
	stage, id, _ := cutMark(mark)
	switch {
	case stage == stageOpening && id != r.id:
		return fmt.Errorf("a restore of another backup (%s) was interrupted when clients could use its streams already; run `settle restore` with that backup again", id)
	case stage == stageOpening:
		r.Resumed = true
		return r.setMark(ctx, stageOpening)
	}
	if err := r.removeCopied(ctx); err != nil {
		return err
	}
	if there {
		return r.setMark(ctx, stageCopying)
	}
	c := r.b.Provisioner.WorkersSpec(r.b.Partitions()).Config
	c.Metadata[provision.MetaRestoring] = r.value(stageCopying)
	return r.b.Provisioner.CreateReplicated(ctx, c, r.b.Provisioner.Want.Replicas)
}

// canKeepSequences returns an error for a server that assigns new sequences to restored messages.
func (r *Restorer) canKeepSequences() error {
	version := r.b.Streams().NC.ConnectedServerVersion()
	if v, ok := wire.ParseVersion(version); !ok || older(v, oldestRestorer) {
		return fmt.Errorf("nats-server %s cannot restore messages with their sequences: %s or later is needed; upgrade the server", version, wire.VersionString(oldestRestorer))
	}
	return nil
}

// needs returns the subjects that a restore publishes to.
func (r *Restorer) needs() (subjects []string) {
	for _, a := range r.b.Provisioner.Specs(r.b.Partitions()) {
		for _, verb := range []string{"INFO", "CREATE", "UPDATE", "DELETE", "RESTORE"} {
			subjects = append(subjects, r.b.Streams().API+"STREAM."+verb+"."+a.Config.Name)
		}
	}
	return append(subjects, "$JS.SNAPSHOT.RESTORE.>")
}

func older(a, b [3]int) bool {
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

func (r *Restorer) value(stage string) string { return stage + " " + r.id + " " + r.token }

func cutMark(mark string) (stage, id, token string) {
	stage, rest, _ := strings.Cut(mark, " ")
	id, token, _ = strings.Cut(rest, " ")
	return stage, id, token
}

// mark returns the restore mark in the bucket of the workers, which is created first and freed last.
func (r *Restorer) mark(ctx context.Context) (mark string, there bool, err error) {
	info, err := r.b.Streams().StreamInfo(ctx, wire.BucketStream(r.b.Streams().Names.WorkersBucket()))
	switch {
	case errors.Is(err, wire.ErrNoStream):
		return "", false, nil
	case err != nil:
		return "", false, fmt.Errorf("look for the deployment: %w", err)
	}
	return info.Config.Metadata[provision.MetaRestoring], true, nil
}

// setMark sets the mark in the bucket of the workers; the stage "" removes it.
func (r *Restorer) setMark(ctx context.Context, stage string) error {
	c := r.b.Provisioner.WorkersSpec(r.b.Partitions()).Config
	if stage != "" {
		c.Metadata[provision.MetaRestoring] = r.value(stage)
	}
	return r.update(ctx, c)
}

// own makes sure that no other restore has begun since.
func (r *Restorer) own(ctx context.Context) error {
	mark, _, err := r.mark(ctx)
	if err != nil {
		return err
	}
	if _, _, token := cutMark(mark); token != r.token {
		return errOtherRestore
	}
	return nil
}

var errOtherRestore = errors.New("another restore has begun since; this one stops and leaves everything to it")

// removeCopied deletes the remains of an interrupted restore, and refuses to delete anything else.
func (r *Restorer) removeCopied(ctx context.Context) error {
	for _, a := range r.b.Provisioner.Specs(r.b.Partitions())[1:] {
		info, err := r.b.Streams().StreamInfo(ctx, a.Config.Name)
		switch {
		case errors.Is(err, wire.ErrNoStream):
			continue
		case err != nil:
			return fmt.Errorf("look for stream %s: %w", a.Config.Name, err)
		case info.Config.Metadata[provision.MetaRestoring] == "":
			return fmt.Errorf("there is a stream %s on this server, which no restore has made; use another server or account, or delete it first", a.Config.Name)
		}
		err = r.b.Streams().JS.DeleteStream(ctx, a.Config.Name)
		if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return fmt.Errorf("delete stream %s, which an interrupted restore has left: %w", a.Config.Name, err)
		}
	}
	return nil
}

// Restored describes a stream to be restored.
type Restored struct {
	provision.Asset
	First, Last     uint64
	Messages, Bytes uint64
	MaxBytes        int64
	MaxAge          time.Duration
}

// config returns the stream's own configuration. With closed, the stream has no
// subjects, so nothing can be stored in it yet.
func (r *Restorer) config(s *Restored) (jetstream.StreamConfig, error) {
	for _, a := range r.b.Provisioner.Specs(r.b.Partitions()) {
		if a.Config.Name != s.Stream {
			continue
		}
		c := a.Config
		if s.Component == provision.ComponentLane && s.MaxBytes > 0 {
			c.MaxBytes = s.MaxBytes
		}
		if s.Component == provision.ComponentDead {
			c.MaxAge = s.MaxAge
		}
		return c, nil
	}
	return jetstream.StreamConfig{}, fmt.Errorf("stream %s is none of a deployment with prefix %s and %d partitions", s.Stream, r.b.Prefix(), r.b.Partitions())
}

func (r *Restorer) closed(c jetstream.StreamConfig) jetstream.StreamConfig {
	c.Subjects = []string{r.b.Prefix() + ".restoring." + c.Name}
	c.RePublish = nil
	c.Metadata[provision.MetaRestoring] = r.value(stageCopying)
	return c
}

// Copy creates a stream with the messages of an archive, each at its sequence. It fails unless
// the result matches s.
func (r *Restorer) Copy(ctx context.Context, s *Restored, messages io.Reader) error {
	c, err := r.config(s)
	if err != nil {
		return err
	}
	c = r.closed(c)
	if c.Replicas, err = r.replicas(c.Name); err != nil {
		return err
	}
	if err := r.transfer(ctx, c, s, messages); err != nil {
		return fmt.Errorf("restore stream %s: %w", s.Stream, err)
	}
	return r.verify(ctx, s)
}

// replicas returns the number that Provision would choose.
func (r *Restorer) replicas(stream string) (int, error) {
	switch n := r.b.Provisioner.Want.Replicas; {
	case n != 0:
		return n, r.b.Provisioner.CheckReplicas(stream, n)
	case r.b.Streams().NC.ConnectedClusterName() != "":
		return 3, nil
	}
	return 1, nil
}

// verify compares a stream with its description.
func (r *Restorer) verify(ctx context.Context, s *Restored) error {
	reach, err := Reach(ctx, r.b, s.Stream)
	if err != nil {
		return err
	}
	if s.Component == provision.ComponentDead && s.MaxAge > 0 { // letters may have expired
		reach.Messages = s.Messages
	}
	if reach.Last != s.Last || reach.Messages != s.Messages {
		return fmt.Errorf("stream %s has %d messages up to %d after the copy, and the backup %d up to %d: the copy is not good; run `settle restore` again", s.Stream, reach.Messages, reach.Last, s.Messages, s.Last)
	}
	return nil
}

// restoreChunk is the part of an archive in one request.
const restoreChunk = 128 << 10

// transfer makes the server create a stream from an archive.
func (r *Restorer) transfer(ctx context.Context, c jetstream.StreamConfig, s *Restored, messages io.Reader) error {
	// The server waits only seconds for each part, so nothing but reading the file happens between two.
	var resp struct {
		Error *jetstream.APIError `json:"error"`
		To    string              `json:"deliver_subject"`
	}
	state := jetstream.StreamState{Msgs: s.Messages, Bytes: s.Bytes, FirstSeq: s.First, LastSeq: s.Last}
	req := struct {
		Config jetstream.StreamConfig `json:"config"`
		State  jetstream.StreamState  `json:"state"`
	}{c, state}
	if err := r.b.Streams().Request(ctx, "STREAM.RESTORE."+c.Name, req, &resp); err != nil {
		return err
	}
	if resp.Error != nil {
		return wire.APIError(resp.Error)
	}
	out, in := io.Pipe()
	go func() { in.CloseWithError(writeSnapshot(in, state, messages)) }() // ends when out is closed
	defer func() { _ = out.Close() }()                                    // never fails
	return r.sendChunks(ctx, resp.To, out)
}

func (r *Restorer) sendChunks(ctx context.Context, to string, archive io.Reader) error {
	chunk := make([]byte, restoreChunk)
	for send := r.sendFirst; ; send = r.sendChunk {
		n, err := io.ReadFull(archive, chunk)
		if n > 0 {
			if err := send(ctx, to, chunk[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return r.sendChunk(ctx, to, nil)
		case err != nil:
			return err
		}
	}
}

// sendFirst sends the first part of an archive. The servers of a cluster first have to learn which of them
// waits for it, which may take a moment.
func (r *Restorer) sendFirst(ctx context.Context, to string, chunk []byte) error {
	for try := 1; ; try++ {
		err := r.sendChunk(ctx, to, chunk)
		if !errors.Is(err, nats.ErrNoResponders) || try == firstTries {
			return err
		}
		if err := r.b.Streams().Sleep(ctx, firstPause); err != nil {
			return err
		}
	}
}

// The server gives up after some seconds without a part.
const (
	firstTries = 40
	firstPause = 100 * time.Millisecond
)

// endPatience is how long the server may take to create a stream from the received data.
const endPatience = 5 * time.Minute

// sendChunk sends a part of an archive, and waits for the server's confirmation. An empty one
// ends the archive.
func (r *Restorer) sendChunk(ctx context.Context, to string, chunk []byte) error {
	patience := max(r.b.Streams().AckTimeout, 30*time.Second)
	if len(chunk) == 0 {
		patience = endPatience
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	m, err := r.b.Streams().NC.RequestWithContext(ctx, to, chunk)
	if err != nil {
		return err
	}
	if len(m.Data) == 0 {
		return nil
	}
	var resp struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &resp); err != nil {
		return fmt.Errorf("the server's answer: %w", err)
	}
	if resp.Error != nil {
		return wire.APIError(resp.Error)
	}
	return nil
}

// writeSnapshot writes the state of the stream, the messages, and the mark of the end.
func writeSnapshot(w io.Writer, state jetstream.StreamState, messages io.Reader) error {
	a := NewArchive(w)
	text, err := json.Marshal(state)
	if err != nil {
		return err
	}
	if err := a.w.WriteHeader(&archive.Header{Name: "state.json", PayloadSize: int64(len(text)), Timestamp: 1}); err != nil {
		return err
	}
	if _, err := a.w.Write(text); err != nil {
		return err
	}
	if err := ReadArchive(messages, a.Add); err != nil {
		return err
	}
	if err := a.w.WriteHeader(&archive.Header{}); err != nil {
		return err
	}
	return a.Close()
}

// Open lets clients store in the streams again. From here on, their messages must not be lost,
// so an interrupted restore continues from here.
func (r *Restorer) Open(ctx context.Context, streams []Restored) error {
	if err := r.own(ctx); err != nil {
		return err
	}
	if err := r.setMark(ctx, stageOpening); err != nil {
		return err
	}
	for i := range streams {
		c, err := r.config(&streams[i])
		if err != nil {
			return err
		}
		if err := r.update(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// update changes a stream's configuration, except its replicas.
func (r *Restorer) update(ctx context.Context, c jetstream.StreamConfig) error {
	info, err := r.b.Streams().StreamInfo(ctx, c.Name)
	if err != nil {
		return fmt.Errorf("stream %s: %w", c.Name, err)
	}
	c.Replicas = info.Config.Replicas
	err = r.b.Streams().Persist(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, r.b.Streams().AckTimeout)
		defer cancel()
		_, err := r.b.Streams().JS.UpdateStream(ctx, c)
		return wire.APITransient(err)
	})
	if err != nil {
		return fmt.Errorf("open stream %s: %w", c.Name, err)
	}
	return nil
}

// Finish allows workers to start.
func (r *Restorer) Finish(ctx context.Context) error {
	if err := r.own(ctx); err != nil {
		return err
	}
	return r.setMark(ctx, "")
}

// Close ends the connection.
func (r *Restorer) Close() { r.b.Close() }
