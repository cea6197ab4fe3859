// Package slabfile is memory that outlives its process: slabs of lines in a
// file that is mapped shared. What a process has committed there is in the
// file when the process is gone, whatever ended it: SIGKILL, the OOM killer, a
// panic, os.Exit. The next process takes it from there. It does not outlive
// the machine: nothing here is synced.
//
// # Why no line is lost and none is torn
//
// A mapped page is the kernel's page of the file. A store into it needs no
// system call, and once it has been carried out no death of the process takes
// it back. So all that matters is the order of two stores: a line's bytes go
// first, the slab's committed length is moved behind them after that. Recovery
// believes the length and nothing else, so a line that was being copied does
// not exist for it, and one whose length is stored exists whole.
//
//   - Program order suffices, without a fence. A kill stops a thread between
//     two instructions: those before have been carried out and their stores
//     become visible, on processors that reorder stores too; those behind never
//     run. Another thread that goes on filling the slab has taken the lock
//     after the first let go of it. Recovery runs in another process, after the
//     kernel has seen the last thread of this one end and let go of the lock.
//   - The compiler must keep that order. copy of a length it does not know is a
//     call of runtime.memmove, and it moves no store across a call: memory is
//     one chain of values in its intermediate form, and a call is a link of it.
//     A test looks at the instructions. Where package slab copies in assembly,
//     the order is written there.
//   - A plain store of 8 bytes to an aligned address is done or not done. Where
//     a word has 4 bytes it is two stores, of which one always stores 0: no
//     length needs more than 31 bits.
//
// All other words are stored atomically, which is both an order and a barrier,
// once a slab or once a write of the destination.
//
// # Exactly once
//
// A batch that was being written when the process was killed is in the
// destination, or a part of it is. Before each Write its place is therefore
// marked: volume, inode, offset, and how much of the slab was delivered before.
// A destination that can look at a place (see Positioner) is then asked what
// stands there, and gets the rest. Any other destination gets the lines of that
// one Write again.
//
// # Where the file should be
//
// On tmpfs: elsewhere the kernel writes pages to a disk now and then, and a
// store into one of them waits. It must be where the next process finds it:
//
//   - systemd: RuntimeDirectory= with RuntimeDirectoryPreserve=yes, or the folder
//     is removed when the service stops. In /dev/shm files of users that are not
//     system users go when the user logs out, unless RemoveIPC=no.
//   - containers: a volume in memory (Kubernetes: emptyDir with medium Memory,
//     which outlives the container and not the pod). A container's own /dev/shm
//     goes with it, and has 64 MiB.
//
// The pages count as memory of the process's cgroup.
//
// # Under the race detector
//
// The detector does not see mapped memory, so it would find no race there. In a
// program built with -race slabs are on the heap by default, and what they hold
// reaches the file when it is closed and not when the process is killed. All
// else is the same: the lock, the checks, recovery. Options.Memory says
// otherwise where a kill is tested.
package slabfile
