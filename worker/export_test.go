package worker

// BeforeLeaving makes a worker call f when a space is about to be evicted.
func (c *Config) BeforeLeaving(f func()) { c.beforeLeaving = f }

// Backlog returns the size in bytes of the events that wait for their spaces.
func (w *Worker) Backlog() int64 { return w.Held().Backlog }
