package membus

import "slices"

// stream is a JetStream stream: messages numbered from 1 without gaps, each of which belongs to one space.
// Messages are removed only from its beginning.
type stream[T any] struct {
	purged   uint64              // up to this sequence
	messages []T                 // messages[i] has sequence purged+i+1
	spaces   map[string][]uint64 // the sequences of each space, ascending
	grown    signal
}

func newStream[T any]() stream[T] {
	return stream[T]{spaces: map[string][]uint64{}}
}

// end returns the sequence of the last message, 0 if there is none.
func (s *stream[T]) end() uint64 { return s.purged + uint64(len(s.messages)) }

// head returns the sequence of the space's last message, 0 if it has none.
func (s *stream[T]) head(space string) uint64 {
	seqs := s.spaces[space]
	if len(seqs) == 0 {
		return 0
	}
	return seqs[len(seqs)-1]
}

// add stores a message; number builds it from its sequence.
func (s *stream[T]) add(space string, number func(seq uint64) T) uint64 {
	seq := s.end() + 1
	s.messages = append(s.messages, number(seq))
	s.spaces[space] = append(s.spaces[space], seq)
	s.grown.raise()
	return seq
}

// at returns the message of a sequence that has not been purged.
func (s *stream[T]) at(seq uint64) T { return s.messages[seq-1-s.purged] }

// after returns up to limit messages after seq, oldest first.
func (s *stream[T]) after(seq uint64, limit int) []T {
	rest := s.messages[min(max(seq, s.purged), s.end())-s.purged:]
	return slices.Clone(first(rest, limit))
}

// of is after for the messages of one space.
func (s *stream[T]) of(space string, seq uint64, limit int) []T {
	seqs := s.spaces[space]
	start, _ := slices.BinarySearch(seqs, seq+1)
	var found []T
	for _, n := range first(seqs[start:], limit) {
		found = append(found, s.at(n))
	}
	return found
}

// purge removes the messages up to a sequence.
func (s *stream[T]) purge(seq uint64) {
	if seq <= s.purged {
		return
	}
	s.messages = slices.Clone(s.messages[seq-s.purged:])
	s.purged = seq
	for space, seqs := range s.spaces { // any order: each on its own
		n, _ := slices.BinarySearch(seqs, seq+1)
		if s.spaces[space] = seqs[n:]; n == len(seqs) {
			delete(s.spaces, space)
		}
	}
}

func first[T any](list []T, limit int) []T {
	return list[:max(0, min(limit, len(list)))]
}

// signal wakes goroutines that wait for a stream to grow. The channel exists only while one waits: most
// messages are added without a waiter.
type signal struct{ waiting chan struct{} }

// wait returns a channel that the next raise closes.
func (s *signal) wait() <-chan struct{} {
	if s.waiting == nil {
		s.waiting = make(chan struct{})
	}
	return s.waiting
}

func (s *signal) raise() {
	if s.waiting != nil {
		close(s.waiting)
		s.waiting = nil
	}
}

// The functions below answer as a lagging replica would: from a stream that ends n messages earlier. A
// deposed leader answers like that, too.

// less returns end minus n, and at least zero.
func less(end uint64, n int) uint64 { return end - min(end, uint64(max(n, 0))) }

// ofUntil is of, in a stream that ends at end.
func (s *stream[T]) ofUntil(space string, seq uint64, limit int, end uint64) []T {
	seqs := s.spaces[space]
	start, _ := slices.BinarySearch(seqs, seq+1)
	stop, _ := slices.BinarySearch(seqs, end+1)
	var found []T
	for _, n := range first(seqs[start:max(start, stop)], limit) {
		found = append(found, s.at(n))
	}
	return found
}

// truncate removes the messages after a sequence, and returns them.
func (s *stream[T]) truncate(behind uint64) []T {
	behind = max(behind, s.purged)
	if behind >= s.end() {
		return nil
	}
	lost := slices.Clone(s.messages[behind-s.purged:])
	s.messages = slices.Clone(s.messages[:behind-s.purged])
	for space, seqs := range s.spaces { // any order: each on its own
		n, _ := slices.BinarySearch(seqs, behind+1)
		if s.spaces[space] = slices.Clone(seqs[:n]); n == 0 {
			delete(s.spaces, space)
		}
	}
	return lost
}
