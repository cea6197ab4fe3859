// Package slabfile is memory that outlives its process: slabs of lines in a
// file that is mapped shared. What a process has committed there is in the file
// when the process is gone, whatever ended it: SIGKILL, the OOM killer, a panic,
// os.Exit. The next process takes it from there. It does not outlive the
// machine: nothing here is synced.
//
// # Why no line is lost and none is torn
//
// A mapped page is the kernel's page of the file. A store into it needs no
// system call, and once it has been carried out no death of the process takes
// it back. So all that matters is the order of two stores: a line's bytes go
// first, the slab's committed length follows. Recovery believes the length, so a
// line that was being copied does not exist for it, and one whose length is
// stored exists whole.
//
//   - Program order suffices, without a fence. A kill stops a thread between
//     two instructions: those before have been carried out and their stores
//     become visible, on processors that reorder stores too; those after it
//     never run. Another thread that goes on filling the slab has taken the lock
//     after the first released it. Recovery runs in another process, after the
//     kernel has seen the last thread of this one end and released the lock.
//   - The compiler must keep that order. copy of a length it does not know is a
//     call of runtime.memmove, and it moves no store across a call. A test looks
//     at the instructions. Where package slab copies in assembly, the order is
//     written there.
//   - A plain store of 8 bytes to an aligned address is done or not done. Where
//     a word has 4 bytes, a kill between its halves leaves a wrong number of
//     lines, on which only a report of damage depends.
//
// # What else may happen to the file
//
// Something else may cut the file, punch holes into it, delete, rename or replace
// it. No store then ends the process (see guard), and Check and Matches notice most of it.
// After a kill, the checksum of a slab that is filled no more says whether its
// lines are as they were written. A slab that was open has none; what the system
// has lost of it reads as zeros, so its lines with zero bytes are left out.
//
// # Exactly once
//
// A batch that was being written when the process was killed is in the
// destination, or a part of it is. Before each Write its place is therefore
// marked: volume, inode, offset, and how much of the slab was delivered before.
// A destination that can look at a place (see Positioner) is then asked what
// is there, and gets the rest. Any other destination gets the lines of that
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
package slabfile
