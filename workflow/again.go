package workflow

// next returns the attempt of the work that is under way.
func (w *work) next() Work {
	next := Work{ID: w.id, Attempt: w.attempt, Action: w.call.Action, Child: w.call.Child, Args: w.args, Named: w.named}
	if w.call.Policy != nil {
		next.Timeout = w.call.Policy.Timeout
	}
	return next
}

// Work returns the attempt of an action that is under way, as the step that started it did. It returns false if
// the run does not wait for its end.
func (r *Run) Work(id string) (Work, bool) {
	w := r.works[id]
	if w == nil || w.retry != "" {
		return Work{}, false
	}
	return w.next(), true
}

// again tries work again, or begins a wait anew. Attempts keep their numbers, so what comes of an earlier one
// is still known as such.
func (r *Run) again(id string) {
	if w := r.works[id]; w != nil {
		if w.retry == "" {
			w.attempt++
		} else { // it has the number of the attempt that it waits for
			delete(r.retries, w.retry)
			r.effects.Drop = append(r.effects.Drop, w.retry)
			w.retry = ""
		}
		w.spent = w.attempt - 1
		r.attempt(w)
		return
	}
	f := r.timers[id]
	if f == nil {
		f = r.conditions.frames[id]
	}
	if f != nil {
		at := f.wait.node
		r.signals.leave(f, f.wait.signal)
		r.conditions.leave(f)
		delete(r.timers, id) // and not dropped: the visit sets it again
		f.wait = nil
		r.push(f, at, Forward)
	}
}
