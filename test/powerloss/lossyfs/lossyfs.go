// Package lossyfs is a file system in memory that drops unsynced data on command, like the disk of a
// machine whose power is cut.
//
// It models the usual journalling file systems of Linux (ext4 in its default mode, XFS):
//
//   - what is written to a file is on the disk once the file is fsynced, or was opened with
//     O_SYNC or O_DSYNC. Closing a file writes nothing through.
//   - creating, renaming, removing and truncating are entries of one journal, in their order. They
//     are on the disk once any file or directory is fsynced after them.
//
// Cut keeps exactly that, which is the worst that such a disk may do, or with Torn a random
// part of the rest as well: of the journal a beginning, and of each file's unsynced bytes a
// beginning, which may end within a write. It does not model disks that lie about fsync, and
// no damage to what was written through.
package lossyfs

import (
	"math/rand/v2"
	"sync"
)

// Disk is the disk under a mounted file system, and outlives the mount. Only one mount may use it at a
// time.
type Disk struct {
	mu      sync.Mutex
	root    *node
	nextIno uint64
	journal []func() // changes of names and sizes that are not on the disk yet
	used    int64
	room    int64 // 0 is no limit
	counts  Counts
}

// Counts counts the operations of a disk.
type Counts struct {
	Writes, Syncs uint64
	// Dropped is the number of bytes lost to power cuts.
	Dropped int64
}

// node is a file or a directory, in the state that programs see and in the state on the disk.
type node struct {
	ino      uint64
	dir      bool
	names    map[string]*node
	kept     map[string]*node
	data     []byte
	keptData []byte
	dirty    []span // the ranges of data that are not in keptData, in the order of the writes
	gone     bool
}

// span is a range of bytes.
type span struct{ from, to int }

// NewDisk returns an empty disk of a size in bytes; 0 is no limit.
func NewDisk(room int64) *Disk {
	d := &Disk{room: room}
	d.root = d.newNode(true)
	return d
}

func (d *Disk) newNode(dir bool) *node {
	d.nextIno++
	n := &node{ino: d.nextIno, dir: dir}
	if dir {
		n.names, n.kept = map[string]*node{}, map[string]*node{}
	}
	return n
}

// Resize makes the disk larger or smaller; existing data stays.
func (d *Disk) Resize(room int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.room = room
}

// Used returns the total size of the files in bytes.
func (d *Disk) Used() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.used
}

// Counts returns the counts so far.
func (d *Disk) Counts() Counts {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.counts
}

// SyncAll syncs all data, as on a machine that has been idle for a while.
func (d *Disk) SyncAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.commit()
	d.each(d.root, (*node).sync)
}

// Cut drops data that is not on the disk. With a random source, a random part of it survives. The disk
// must not be mounted.
func (d *Disk) Cut(torn *rand.Rand) {
	d.mu.Lock()
	defer d.mu.Unlock()
	keep := 0
	if torn != nil {
		keep = torn.IntN(len(d.journal) + 1)
	}
	for _, entry := range d.journal[:keep] {
		entry()
	}
	d.journal = nil
	d.used = 0
	d.restore(d.root, torn)
}

// restore resets the state that programs see to the state on the disk.
func (d *Disk) restore(n *node, torn *rand.Rand) {
	if n.dir {
		n.names = map[string]*node{}
		for name, child := range n.kept {
			n.names[name] = child
			d.restore(child, torn)
		}
		return
	}
	before := len(n.data)
	if torn != nil && len(n.dirty) > 0 {
		n.tear(torn)
	}
	lost := 0
	for _, s := range n.dirty {
		lost += s.to - s.from
	}
	if before > len(n.keptData) || lost > 0 {
		d.counts.Dropped += int64(max(before-len(n.keptData), lost))
	}
	n.data = append([]byte(nil), n.keptData...)
	n.dirty, n.gone = nil, false
	d.used += int64(len(n.data))
}

// tear keeps a prefix of the unsynced writes.
func (n *node) tear(torn *rand.Rand) {
	total := 0
	for _, s := range n.dirty {
		total += s.to - s.from
	}
	left := torn.IntN(total + 1)
	for i, s := range n.dirty {
		part := min(left, s.to-s.from)
		n.keep(span{s.from, s.from + part})
		left -= part
		n.dirty[i].from += part
	}
}

// keep copies bytes to the disk.
func (n *node) keep(s span) {
	s.to = min(s.to, len(n.data))
	if s.from >= s.to {
		return
	}
	n.keptData = grown(n.keptData, s.to)
	copy(n.keptData[s.from:s.to], n.data[s.from:s.to])
}

// sync copies all data of a file to the disk.
func (n *node) sync() {
	for _, s := range n.dirty {
		n.keep(s)
	}
	n.dirty = n.dirty[:0]
	n.keptData = resized(n.keptData, len(n.data))
}

// commit writes the journal to the disk.
func (d *Disk) commit() {
	for _, entry := range d.journal {
		entry()
	}
	d.journal = d.journal[:0]
}

// fsync is fsync(2) of a file or a directory.
func (d *Disk) fsync(n *node) {
	d.counts.Syncs++
	d.commit()
	if !n.dir {
		n.sync()
	}
}

func (d *Disk) each(n *node, do func(*node)) {
	if !n.dir {
		do(n)
		return
	}
	for _, child := range n.names {
		d.each(child, do)
	}
}

// link adds a name of a node, unlink removes it. Both reach the disk with the journal.
func (d *Disk) link(dir *node, name string, n *node) {
	dir.names[name] = n
	d.journal = append(d.journal, func() { dir.kept[name] = n })
}

func (d *Disk) unlink(dir *node, name string) {
	delete(dir.names, name)
	d.journal = append(d.journal, func() { delete(dir.kept, name) })
}

// drop records that a file has lost a name.
func (d *Disk) drop(n *node) {
	if !n.dir && !n.gone {
		n.gone = true
		d.used -= int64(len(n.data))
	}
}

// write is pwrite(2); false if there is no room.
func (d *Disk) write(n *node, data []byte, at int) bool {
	end := at + len(data)
	if more := int64(end - len(n.data)); more > 0 && !d.take(n, more) {
		return false
	}
	d.counts.Writes++
	if at > len(n.data) {
		n.dirty = append(n.dirty, span{len(n.data), at}) // a hole of zeros
	}
	n.data = grown(n.data, end)
	copy(n.data[at:end], data)
	n.dirty = append(n.dirty, span{at, end})
	return true
}

func (d *Disk) take(n *node, more int64) bool {
	if d.room > 0 && more > 0 && d.used+more > d.room {
		return false
	}
	if !n.gone {
		d.used += more
	}
	return true
}

// truncate is ftruncate(2); false if there is no room.
func (d *Disk) truncate(n *node, size int) bool {
	if !d.take(n, int64(size-len(n.data))) {
		return false
	}
	n.data = resized(n.data, size)
	for i := range n.dirty {
		n.dirty[i].from, n.dirty[i].to = min(n.dirty[i].from, size), min(n.dirty[i].to, size)
	}
	d.journal = append(d.journal, func() { n.keptData = resized(n.keptData, min(size, len(n.keptData))) })
	return true
}

// grown returns b extended to at least size bytes.
func grown(b []byte, size int) []byte {
	if size <= len(b) {
		return b
	}
	return resized(b, size)
}

func resized(b []byte, size int) []byte {
	if size <= len(b) {
		return b[:size]
	}
	if size > cap(b) {
		b = append(make([]byte, 0, max(size, 2*cap(b))), b...)
	}
	old := len(b)
	b = b[:size]
	clear(b[old:])
	return b
}
