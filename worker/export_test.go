package worker

// BeforeLeaving has f called when a space is about to leave memory.
func (c *Config) BeforeLeaving(f func()) { c.beforeLeaving = f }

// Backlog is the bytes of the events that wait for their spaces.
func (w *Worker) Backlog() int64 { return w.Held().Backlog }
