package replica

import (
	"fmt"
	"maps"
	"slices"

	"github.com/settlehq/settle/model"
)

// Checkpoint is the state to save so that the space can be loaded from it and the log after Mark.Seq.
type Checkpoint struct {
	// Docs are documents, and pieces of the positions (see positions.go).
	Docs []model.StateDoc
	Mark model.StateDoc
}

// Checkpoint returns the documents and the waiting events that changed since the last call, and the mark. The
// caller must save the documents before the mark, and must not lose them: pass a checkpoint that could not be
// saved to Spoil. Rev is 0, for the caller to fill in.
func (r *Replica) Checkpoint() (Checkpoint, error) {
	r.positions.splitIfMany(r)
	data, err := r.mark().Encode()
	if err != nil {
		return Checkpoint{}, fmt.Errorf("space %s: %w", r.Space, err)
	}
	c := Checkpoint{Mark: model.StateDoc{Data: data, Seq: r.Seq}}
	pieces, err := r.positions.changed(r)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("space %s: %w", r.Space, err)
	}
	ids := make([]string, 0, len(r.dirty))
	for id := range r.dirty { // any order: sorted below
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		c.Docs = append(c.Docs, stateDoc(id, r.docs[id]))
		r.tasks.save(id, r.docs[id])
	}
	clear(r.tasks.fresh)
	c.Docs = append(c.Docs, pieces...)
	for _, n := range slices.Sorted(maps.Keys(r.Later.dirty)) {
		item, err := r.Later.item(n)
		if err != nil {
			return Checkpoint{}, fmt.Errorf("space %s: %w", r.Space, err)
		}
		c.Docs = append(c.Docs, item)
	}
	clear(r.dirty)
	clear(r.positions.dirty)
	clear(r.Later.dirty)
	return c, nil
}

// MarkUnsaved marks the documents of a checkpoint that was not saved as changed again.
func (r *Replica) MarkUnsaved(c Checkpoint) {
	for i := range c.Docs {
		piece, isPiece := model.PieceOfStateKey(c.Docs[i].Doc)
		slot, isLater := model.SlotOfStateKey(c.Docs[i].Doc)
		switch {
		case c.Docs[i].Kept.Rev > 0: // it has not changed
		case isPiece:
			r.positions.dirty[piece] = true
		case isLater:
			r.Later.dirty[slot] = true
		case c.Docs[i].Doc == model.DueKey: // written by the saver
		default:
			r.dirty[c.Docs[i].Doc] = true
		}
	}
}

func stateDoc(id string, d Doc) model.StateDoc {
	s := model.StateDoc{Doc: id, Seq: d.Seq}
	if !d.Value.IsAbsent() {
		s.Data = d.Value.AppendJSON(nil)
	}
	return s
}

func (r *Replica) mark() *model.Mark {
	m := &model.Mark{
		Version: model.MarkVersion, Epoch: r.Epoch, Owner: r.Owner, Term: r.Term,
		First: r.first, Before: r.before, Purged: r.purged, Floor: r.floor,
		Cursor: r.Cursor, WithoutReceipt: r.WithoutReceipt, HasReceipt: r.HasReceipt, Trying: r.Trying, Tried: r.TriedBy,
	}
	if r.positions.split {
		m.Version = model.SplitMarkVersion
	} else {
		for origin, in := range r.Inbound { // any order: into a map
			m.Receive(origin, &in)
		}
		for to, out := range r.Outbound { // any order: into a map
			m.Send(to, out)
		}
	}
	for i := range r.Own {
		ev := &r.Own[i]
		m.Own = append(m.Own, model.Send{
			ID: ev.ID, To: ev.Space, Stream: ev.Stream, Payload: ev.Payload, ReplayKey: ev.ReplayKey, Behind: ev.Behind, Depth: ev.Depth, Expires: ev.Expires, Trace: ev.Trace,
		})
	}
	return m
}

// Load returns the replica from the saved state. It is current once the log after Seq has been applied.
func Load(space string, st model.SpaceState) (*Replica, error) {
	r := New(space)
	old, err := readStale(&st.Mark)
	if err != nil {
		return nil, fmt.Errorf("load space %s: %w", space, err)
	}
	for i := range st.Docs {
		d := &st.Docs[i]
		v, err := parse(d.Data)
		if err != nil {
			return nil, fmt.Errorf("load document %s of space %s: %w", d.Doc, space, err)
		}
		if old.has(d) {
			r.set(d.Doc, Doc{Seq: st.Mark.Seq}, false) // so that it is deleted again
			continue
		}
		r.docs[d.Doc] = Doc{Value: v, Seq: d.Changed(), first: d.Kept.Rev}
		r.tasks.load(d.Doc, r.docs[d.Doc])
	}
	for i := range st.Pieces {
		p, err := model.DecodePositions(st.Pieces[i].Data)
		if err != nil {
			return nil, fmt.Errorf("load %s of space %s: %w", st.Pieces[i].Doc, space, err)
		}
		r.know(p)
	}
	if err := r.Later.load(st.Later); err != nil {
		return nil, fmt.Errorf("load space %s: %w", space, err)
	}
	if old.mark != nil {
		r.restore(st.Mark.Seq, old.mark)
		r.loaded = old.at
	}
	return r, nil
}

// MarkStored records that a mark was saved, and its standing in the bucket. A mark whose save was in flight
// during the takeover is not the owner's first: it does not cover the commits before the takeover.
func (r *Replica) MarkStored(m model.MarkPosition) {
	if r.first == 0 && m.Seq >= r.Epoch {
		r.first = m.Rev
	}
	r.forgetTasks(m.Seq)
}

// MarkersPurged records marks before whose standing markers of deleted documents may be purged from now on. Every
// later checkpoint contains them; see stale.
func (r *Replica) MarkersPurged(behind []model.MarkPosition) { r.purged = behind }

func parse(data []byte) (model.Value, error) {
	if data == nil {
		return model.Value{}, nil
	}
	return model.ParseValue(data)
}

func (r *Replica) restore(seq uint64, m *model.Mark) {
	r.Seq, r.Epoch, r.Owner, r.Term, r.Cursor = seq, m.Epoch, m.Owner, m.Term, m.Cursor
	r.Lives = Lives{Began: true, WithoutReceipt: m.WithoutReceipt, HasReceipt: m.HasReceipt, Trying: m.Trying, TriedBy: m.Tried}
	r.floor = m.Floor
	r.know(&m.Positions)
	r.positions.split = m.Version == model.SplitMarkVersion
	for i := range m.Own {
		r.Own = append(r.Own, m.Own[i].Event())
	}
}
