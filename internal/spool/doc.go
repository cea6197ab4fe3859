// Package spool keeps batches of whole lines on disk, first in first out, for
// a peer that is away: bounded, owned by one process at a time, and readable
// after that process was killed.
//
// # What is promised
//
//  1. When [Spool.Append] returns nil, the lines are with the kernel: they
//     survive the death of the process. After [Spool.Sync] they survive a power
//     cut too. After an error none of them is stored; only if the disk refused
//     to take back a part that was written, and the process dies before the
//     next Append, may they be found by the next Open.
//  2. [Spool.Peek] returns the oldest lines and, until they are settled, the
//     same ones again, also after a restart. [Spool.Ack] settles them. Both
//     are noted in the cursor file, which is with the kernel when they return:
//     a process that is killed delivers again what it had not settled, nothing
//     else. After a power cut it may be more.
//  3. [Batch.Key] names the lines that Peek returns. Where the cursor is lost,
//     the pieces are still cut at the same places: where a frame begins in
//     another 256 KiB of its file.
//  4. A batch with a tag is returned alone, with its tag.
//  5. Nothing that is damaged stops the spool: it is skipped, counted and
//     reported as a [Finding]. Lines carry running numbers, so the count is
//     exact wherever anything sound follows.
//
// The bytes are described in docs/FORMAT.md.
package spool
