package host

import "github.com/settlehq/settle/model"

// floorCore is the part of a core that knows which documents are stored where.
type floorCore interface {
	Floor() uint64
	RaiseFloor(rev uint64)
	StoredBefore(rev uint64, revs map[string]uint64) []string
	Again(ids []string, revs map[string]uint64) []model.StateDoc
}

// floorStep is how many documents a checkpoint stores again to raise the floor.
const floorStep = 512

// raising raises the floor of a space (replica.Floor), so that markers can be purged.
type raising struct {
	// least is the number of markers from which on the floor is raised.
	least int
	// to is the revision to which it is being raised, 0 if it is not.
	to uint64
	// lookAt is the number of markers at which the documents are looked at again: they were too many.
	lookAt int
}

// again returns documents that the next checkpoint has to store again. The floor is raised if that lets more markers be
// purged than documents are stored, so that deletions pay for it.
func (r *raising) again(core floorCore, m *markers, revs map[string]uint64) []model.StateDoc {
	n, to := 0, r.to
	if to == 0 {
		if n, to = m.aboveFloor(); n < max(r.least, r.lookAt) {
			return nil
		}
	}
	before := core.StoredBefore(to, revs)
	if r.to == 0 && n < len(before) {
		r.lookAt = min(2*n, len(before))
		return nil
	}
	r.to, r.lookAt = to, 0
	return core.Again(before[:min(len(before), floorStep)], revs)
}

// stored raises the floor after a checkpoint was saved, if no document is left before it. What has changed since the checkpoint was
// taken is not looked at: it is stored after the marker that the floor is, by any owner.
func (r *raising) stored(core floorCore, revs map[string]uint64) {
	if r.to != 0 && len(core.StoredBefore(r.to, revs)) == 0 {
		core.RaiseFloor(r.to)
		r.to = 0
	}
}
