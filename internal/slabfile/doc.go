// Package slabfile is memory that outlives its process: slabs of lines in a file
// that is mapped shared. What a process has committed is in the file after SIGKILL,
// the OOM killer, a panic or os.Exit, and the next process delivers it. It does not
// outlive the machine: nothing is synced.
//
// # Why no line is lost and none is torn
//
// A mapped page is the kernel's page of the file: a store into it survives the
// process. So only the order of two stores matters. A line's bytes go first, the
// slab's committed length follows, and recovery believes the length.
//
//   - Program order suffices, without a fence. A kill stops a thread between two
//     instructions: the stores before it become visible, those after it never run.
//     A thread that continues to fill the slab has acquired the lock first.
//     Recovery runs in another process, after the last thread of this one has ended.
//   - The compiler keeps that order: copy of an unknown length is a call of
//     runtime.memmove, and no store moves across a call. A test looks at the
//     instructions. Package slab's assembly has the order written out.
//   - A plain store of 8 bytes to an aligned address is done or not done. Where a
//     word has 4 bytes, a kill between its halves leaves a wrong number of lines,
//     which only a report of damage uses.
//
// # What else may happen to the file
//
// Another program may cut the file, punch holes into it, delete, rename or replace
// it. No store then ends the process (see guard), and Check and Matches notice most
// of it. After a kill, the checksum of a full slab says whether its lines are as
// they were written. An open slab has none; lost pages read as zeros, so its lines
// with zero bytes are left out.
//
// # Exactly once
//
// A kill during a Write leaves all or a part of the batch in the destination.
// Before each Write its place is therefore marked: volume, inode, offset, and how
// much of the slab was delivered before. A Positioner is asked what is at that place
// and gets the rest. Any other destination gets the lines of that one Write again.
//
// # Where the file should be
//
// On tmpfs: elsewhere the kernel writes pages to a disk now and then, and a store
// into one of them waits. The next process must find the file there:
//
//   - systemd: RuntimeDirectory= with RuntimeDirectoryPreserve=yes, or the folder
//     is removed when the service stops. In /dev/shm, files of users that are not
//     system users go when the user logs out, unless RemoveIPC=no.
//   - containers: a volume in memory (Kubernetes: emptyDir with medium Memory,
//     which outlives the container and not the pod). A container's own /dev/shm
//     goes with it, and has 64 MiB.
//
// The pages count as memory of the process's cgroup.
package slabfile
