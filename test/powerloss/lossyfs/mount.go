package lossyfs

import (
	"context"
	"fmt"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// Mount mounts a disk in a directory. It needs /dev/fuse and permission to mount. Every program that
// uses the directory must have ended when unmount is called.
func Mount(d *Disk, dir string) (unmount func() error, err error) {
	_, err = fs.Mount(dir, &inode{d: d, n: d.root}, &fs.Options{
		MountOptions: fuse.MountOptions{DirectMountStrict: true, FsName: "lossyfs", Name: "lossyfs"},
	})
	if err != nil {
		return nil, fmt.Errorf("mount a file system on %s: %w; it needs /dev/fuse and root", dir, err)
	}
	return func() error {
		// Not server.Unmount, which waits until the last copy of the mount is gone: every process that
		// has created a mount namespace since then has one.
		return syscall.Unmount(dir, syscall.MNT_DETACH)
	}, nil
}

// inode is the kernel's view of a node.
type inode struct {
	fs.Inode
	d *Disk
	n *node
}

var _ = interface {
	fs.NodeLookuper
	fs.NodeCreater
	fs.NodeMkdirer
	fs.NodeUnlinker
	fs.NodeRmdirer
	fs.NodeRenamer
	fs.NodeOpener
	fs.NodeGetattrer
	fs.NodeSetattrer
	fs.NodeReaddirer
	fs.NodeFsyncer
	fs.NodeStatfser
}((*inode)(nil))

// handle is an open file.
type handle struct {
	d       *Disk
	n       *node
	through bool // O_SYNC or O_DSYNC
}

var _ = interface {
	fs.FileReader
	fs.FileWriter
	fs.FileFsyncer
	fs.FileFlusher
}((*handle)(nil))

const blockSize = 4096

func (n *node) mode() uint32 {
	if n.dir {
		return fuse.S_IFDIR | 0o700
	}
	return fuse.S_IFREG | 0o600
}

func (n *node) attr(out *fuse.Attr) {
	out.Ino, out.Mode, out.Nlink = n.ino, n.mode(), 1
	out.Size, out.Blksize = uint64(len(n.data)), blockSize
	out.Blocks = (out.Size + 511) / 512
}

func (i *inode) child(ctx context.Context, n *node, out *fuse.EntryOut) *fs.Inode {
	n.attr(&out.Attr)
	return i.NewInode(ctx, &inode{d: i.d, n: n}, fs.StableAttr{Mode: n.mode(), Ino: n.ino})
}

func (i *inode) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	i.d.mu.Lock()
	defer i.d.mu.Unlock()
	n := i.n.names[name]
	if n == nil {
		return nil, syscall.ENOENT
	}
	return i.child(ctx, n, out), 0
}

func (i *inode) Create(ctx context.Context, name string, flags, _ uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	i.d.mu.Lock()
	defer i.d.mu.Unlock()
	if i.n.names[name] != nil {
		return nil, nil, 0, syscall.EEXIST
	}
	n := i.d.newNode(false)
	i.d.link(i.n, name, n)
	return i.child(ctx, n, out), newHandle(i.d, n, flags), 0, 0
}

func newHandle(d *Disk, n *node, flags uint32) *handle {
	return &handle{d: d, n: n, through: flags&(syscall.O_SYNC|syscall.O_DSYNC) != 0}
}

func (i *inode) Mkdir(ctx context.Context, name string, _ uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	i.d.mu.Lock()
	defer i.d.mu.Unlock()
	if i.n.names[name] != nil {
		return nil, syscall.EEXIST
	}
	n := i.d.newNode(true)
	i.d.link(i.n, name, n)
	return i.child(ctx, n, out), 0
}

func (i *inode) Unlink(_ context.Context, name string) syscall.Errno {
	i.d.mu.Lock()
	defer i.d.mu.Unlock()
	n := i.n.names[name]
	if n == nil {
		return syscall.ENOENT
	}
	i.d.unlink(i.n, name)
	i.d.drop(n)
	return 0
}

func (i *inode) Rmdir(_ context.Context, name string) syscall.Errno {
	i.d.mu.Lock()
	defer i.d.mu.Unlock()
	n := i.n.names[name]
	switch {
	case n == nil:
		return syscall.ENOENT
	case len(n.names) > 0:
		return syscall.ENOTEMPTY
	}
	i.d.unlink(i.n, name)
	return 0
}

// Rename is one entry of the journal: the disk has the old name or the new one.
func (i *inode) Rename(_ context.Context, name string, newParent fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	to, ok := newParent.(*inode)
	if !ok || flags != 0 {
		return syscall.EINVAL
	}
	i.d.mu.Lock()
	defer i.d.mu.Unlock()
	n := i.n.names[name]
	if n == nil {
		return syscall.ENOENT
	}
	if over := to.n.names[newName]; over != nil && over != n {
		if over.dir && len(over.names) > 0 {
			return syscall.ENOTEMPTY
		}
		i.d.drop(over)
	}
	delete(i.n.names, name)
	to.n.names[newName] = n
	i.d.journal = append(i.d.journal, func() {
		delete(i.n.kept, name)
		to.n.kept[newName] = n
	})
	return 0
}

func (i *inode) Open(_ context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	i.d.mu.Lock()
	defer i.d.mu.Unlock()
	if flags&syscall.O_TRUNC != 0 {
		i.d.truncate(i.n, 0)
	}
	return newHandle(i.d, i.n, flags), 0, 0
}

func (i *inode) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	i.d.mu.Lock()
	defer i.d.mu.Unlock()
	i.n.attr(&out.Attr)
	return 0
}

func (i *inode) Setattr(_ context.Context, _ fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	i.d.mu.Lock()
	defer i.d.mu.Unlock()
	if size, ok := in.GetSize(); ok && !i.d.truncate(i.n, int(size)) {
		return syscall.ENOSPC
	}
	i.n.attr(&out.Attr)
	return 0
}

func (i *inode) Readdir(context.Context) (fs.DirStream, syscall.Errno) {
	i.d.mu.Lock()
	defer i.d.mu.Unlock()
	var entries []fuse.DirEntry
	for name, n := range i.n.names {
		entries = append(entries, fuse.DirEntry{Name: name, Ino: n.ino, Mode: n.mode()})
	}
	return fs.NewListDirStream(entries), 0
}

// Fsync syncs a directory; files are synced through their handle.
func (i *inode) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	i.d.mu.Lock()
	defer i.d.mu.Unlock()
	i.d.fsync(i.n)
	return 0
}

func (i *inode) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	i.d.mu.Lock()
	defer i.d.mu.Unlock()
	room := i.d.room
	if room == 0 {
		room = 64 << 30
	}
	out.Bsize, out.Frsize, out.NameLen = blockSize, blockSize, 255
	out.Blocks = uint64(room / blockSize)
	out.Bfree = uint64(max(0, room-i.d.used) / blockSize)
	out.Bavail = out.Bfree
	return 0
}

func (h *handle) Read(_ context.Context, dest []byte, at int64) (fuse.ReadResult, syscall.Errno) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if at >= int64(len(h.n.data)) {
		return fuse.ReadResultData(nil), 0
	}
	return fuse.ReadResultData(dest[:copy(dest, h.n.data[at:])]), 0
}

func (h *handle) Write(_ context.Context, data []byte, at int64) (uint32, syscall.Errno) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if !h.d.write(h.n, data, int(at)) {
		return 0, syscall.ENOSPC
	}
	if h.through {
		h.d.fsync(h.n)
	}
	return uint32(len(data)), 0
}

func (h *handle) Fsync(context.Context, uint32) syscall.Errno {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	h.d.fsync(h.n)
	return 0
}

// Flush is close(2), which syncs nothing.
func (h *handle) Flush(context.Context) syscall.Errno { return 0 }
