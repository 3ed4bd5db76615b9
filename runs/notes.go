package runs

import "github.com/settlehq/settle/space"

// What a space notes of its workflows, for traces and metrics; see space.Note. The name is that of the workflow, of the action or of the
// schedule.
const (
	NoteStarted         space.NoteKind = "workflow.run.started"
	NoteDone            space.NoteKind = "workflow.run.done"
	NoteFailed          space.NoteKind = "workflow.run.failed"
	NoteCancelled       space.NoteKind = "workflow.run.cancelled"
	NoteStepStarted     space.NoteKind = "workflow.step.started"
	NoteStepDone        space.NoteKind = "workflow.step.done"
	NoteStepFailed      space.NoteKind = "workflow.step.failed"
	NoteScheduleStarted space.NoteKind = "workflow.schedule.started"
	NoteScheduleSkipped space.NoteKind = "workflow.schedule.skipped"
)

// maxNotes bounds the notes of skipped times of a schedule in one transaction: after a downtime there may be very many.
const maxNotes = 100

// noteOf returns what is noted of the end of a run.
func noteOf(s State) space.NoteKind {
	switch s {
	case Failed:
		return NoteFailed
	case Cancelled:
		return NoteCancelled
	}
	return NoteDone
}

// endOf returns what is noted of the task or child of which a record reports the end, nothing if it is not pending.
func endOf(rec *record, was map[string]pending) space.Note {
	work, attempt, kind := "", 0, NoteStepDone
	switch {
	case rec.Done != nil:
		work, attempt = rec.Done.Work, rec.Done.Attempt
	case rec.Failed != nil:
		work, attempt, kind = rec.Failed.Work, rec.Failed.Attempt, NoteStepFailed
	}
	p, is := was[work]
	if !is || p.Attempt != attempt {
		return space.Note{}
	}
	name := p.Action
	if p.Child != "" {
		name = p.Child
	}
	return space.Note{Kind: kind, Name: name}
}
