package settle

import (
	"iter"

	"github.com/settlehq/settle/worker"
)

// WorkerOf is the configuration of a deployment's first worker.
func WorkerOf(cfg *Config) WorkerConfig { return cfg.worker(firstWorker) }

// InnerOf is the part of it for package worker.
func InnerOf(cfg *WorkerConfig) worker.Config { return cfg.inner() }

// Followers is how many spaces the client follows to hear of receipts.
func (c *Client) Followers() int {
	c.awaits.mu.Lock()
	defer c.awaits.mu.Unlock()
	return len(c.awaits.followers)
}

// Queues is how many spaces the sender keeps in memory.
func (s *Sender) Queues() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queues)
}

// IsMadeByReads reports whether a read creates a space of the program.
func (p *Program) IsMadeByReads(space string) bool { return p.p.IsMadeByReads(space) }

// DefaultLog is the log of a deployment that was given none.
var DefaultLog = defaultLog

// PartOf returns the updates of a cell that those of its document contain.
func PartOf[T any](c Cell[T], document iter.Seq2[Update[Value], error]) iter.Seq2[Update[T], error] {
	return c.updates(document)
}
