// Package journal keeps canonical log lines in append-only segment files. It is write-ahead
// log, queue and store in one.
//
// Every record has an offset, a number from 0 up that retention, compression and restarts
// do not change. [Journal.Append] stores a batch and returns the offset of its first
// record. A [Reader] returns the records in order from any offset and then waits for new
// ones. Readers neither slow the writer nor hold anything back.
//
// # What an answer of Append means
//
//  1. nil without Batch.Synced: the lines are with the kernel. They survive the process,
//     not the machine.
//  2. nil with Batch.Synced: fdatasync has returned after the lines and everything before
//     them; they survive a power cut. Exception: batches in a segment whose fsync failed
//     earlier, whose callers were told.
//  3. [ErrNotSynced]: the lines are stored and readers see them, but they may not survive a
//     power cut. Sending them again stores them twice. The journal continues in a new
//     segment and never syncs the old file again; while no fsync succeeds it begins at most
//     one a second.
//  4. Any other error: the lines are not stored. Only if the rollback of a failed write
//     failed too, and the process dies before the next successful write, they may be found.
//  5. The context bounds only the wait for the write: when it ends before, nothing is
//     stored.
//
// # Cursors that outlive the process
//
// After a power cut, buffered records that were read already may be gone, and their offsets
// are given to new records. A reader that makes its cursor durable must first call
// [Journal.Sync], or keep the cursor at or below Stats().Synced.
//
// # Failure
//
// A damaged or missing piece never stops Open or a Reader: it is reported, in
// [Journal.Recovery] or as a [*Gap], and reading continues after it. A file of a newer
// version is refused by name and not cut.
//
// The bytes are described in docs/FORMAT.md.
package journal
