// Package journal keeps canonical log lines in append-only segment files: it is
// write-ahead log, queue and store in one.
//
// Every record has an offset, a number that counts from 0 and that retention,
// compression and restarts do not change. [Journal.Append] stores a batch and
// returns the offset of its first record; a [Reader] walks the records in
// order from any offset and then waits for new ones. Readers do not slow the
// writer and hold nothing back.
//
// # What an answer of Append means
//
//  1. nil for a batch with Synced unset: the lines are with the kernel; they
//     survive the death of this process, not that of the machine.
//  2. nil for a batch with Synced set: fdatasync has returned after the lines
//     and everything before them; they survive a power cut. A batch inside a
//     segment whose fsync failed earlier is the exception to "everything before":
//     its own appender was told.
//  3. An error that is [ErrNotSynced]: the lines are stored and readers see
//     them, but they may not survive a power cut. Sending them again stores
//     them twice. The journal goes on in a new segment and never syncs the old
//     file again; while no fsync succeeds it begins at most one a second.
//  4. Any other error: the lines are not stored. One case is left to chance: a
//     write that failed, whose rollback failed too, followed by the death of
//     the process before the next successful write; the lines may then be found.
//  5. The context bounds the wait for a place only. While it is waiting, an
//     ended context returns its error and nothing is stored; from the moment
//     the batch is in a group the answer is that group's.
//
// # Cursors that outlive the process
//
// After a power cut, buffered records that were read already may be gone, and
// their offsets are given to new records. A reader that makes its cursor
// durable must therefore call [Journal.Sync] first, or keep the cursor at or
// below Stats().Synced.
//
// # Failure
//
// A damaged or missing piece never stops Open or a Reader: it is reported, in
// [Journal.Recovery] or as a [*Gap], and reading goes on behind it. A file
// written by a newer version is refused by name instead of being cut.
//
// The bytes are described in docs/FORMAT.md.
package journal
