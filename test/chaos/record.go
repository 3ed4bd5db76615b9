//go:build unix

package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/test/chaos/history"
)

// Clients write records to files of fixed-size entries: memory must not grow
// with the length of a run.
type (
	ackRecord struct {
		Client, Space uint16
		N             uint32
		Lane          uint64 // 0 if it was there already
		At            int64
	}
	receiptRecord struct {
		Client, Space uint16
		N             uint32
		Outcome       uint32 // hash
		Result        uint32 // hash
		At            int64
	}
	watchRecord struct {
		Observer, Space uint16
		Session         uint32
		Doc             uint32 // hash
		Value           uint32 // hash
		Revision        uint64
		At              int64
	}
)

// journal is a file of records.
type journal[T any] struct {
	name string
	mu   sync.Mutex
	file *os.File
	w    *bufio.Writer
	buf  []byte
	err  error
}

func newJournal[T any](dir, name string) (*journal[T], error) {
	j := &journal[T]{name: filepath.Join(dir, name)}
	var err error
	if j.file, err = os.Create(j.name); err != nil {
		return nil, err
	}
	j.w = bufio.NewWriterSize(j.file, 64<<10)
	return j, nil
}

func (j *journal[T]) add(r T) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var err error
	if j.buf, err = binary.Append(j.buf[:0], binary.LittleEndian, r); err == nil {
		_, err = j.w.Write(j.buf)
	}
	j.err = errors.Join(j.err, err)
}

// each reads the records back.
func (j *journal[T]) each(do func(T)) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := errors.Join(j.err, j.w.Flush()); err != nil {
		return err
	}
	f, err := os.Open(j.name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	var r T
	buf := make([]byte, binary.Size(r))
	in := bufio.NewReaderSize(f, 64<<10)
	for {
		if _, err := io.ReadFull(in, buf); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if _, err := binary.Decode(buf, binary.LittleEndian, &r); err != nil {
			return err
		}
		do(r)
	}
}

func (j *journal[T]) close() { _ = j.file.Close() } // it has been read, or is not wanted

// records holds all journals of a run.
type records struct {
	acks     *journal[ackRecord]
	receipts *journal[receiptRecord]
	watches  *journal[watchRecord]
}

func newRecords(dir string) (*records, error) {
	acks, err1 := newJournal[ackRecord](dir, "acks.bin")
	receipts, err2 := newJournal[receiptRecord](dir, "receipts.bin")
	watches, err3 := newJournal[watchRecord](dir, "watches.bin")
	return &records{acks, receipts, watches}, errors.Join(err1, err2, err3)
}

func (r *records) close() {
	r.acks.close()
	r.receipts.close()
	r.watches.close()
}

// tell passes the records to a checker: all of them, or those of events that were acknowledged before a
// time.
func (r *records) tell(c *history.Checker, w history.Workload, before time.Time) error {
	all := before.IsZero()
	in := func(at int64) bool { return all || at < before.UnixNano() }
	outcomes, docs := map[uint32]model.Outcome{}, map[uint32]string{}
	for _, o := range []model.Outcome{model.Handled, model.Failed, model.Refused} {
		outcomes[history.Hash(string(o))] = o
	}
	for _, d := range []string{history.DocView, history.DocPair, history.DocMarked} {
		docs[history.Hash(d)] = d
	}
	return errors.Join(
		r.acks.each(func(a ackRecord) {
			if in(a.At) {
				c.Acked(int(a.Client), int(a.Space), a.N, a.Lane, time.Unix(0, a.At))
			}
		}),
		r.receipts.each(func(a receiptRecord) {
			if !in(a.At) {
				return
			}
			c.Received(int(a.Client), int(a.Space), a.N, history.Answer{Outcome: outcomes[a.Outcome], Result: a.Result}, time.Unix(0, a.At))
		}),
		r.watches.each(func(a watchRecord) {
			if !all {
				c.Asked(w.Space(int(a.Space)), docs[a.Doc])
				return
			}
			c.Watched(int(a.Observer), int(a.Session), w.Space(int(a.Space)), docs[a.Doc], a.Revision, a.Value, time.Unix(0, a.At))
		}))
}

func stamp() int64 { return time.Now().UnixNano() }
