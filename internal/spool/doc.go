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
//  2. [Spool.Next] hands out lines piece by piece, the oldest first, up to
//     [MaxInFlight] pieces at a time. [Spool.Ack] settles them, in any order.
//     Both are noted in the cursor file, which is with the kernel when they
//     return: after a kill, Next hands out again the pieces that were not
//     settled, and those that were settled while an older one was not, but
//     nothing else. Of a piece of which a part was settled it hands out the
//     rest if the piece is the oldest, and otherwise the whole. After a power
//     cut it may be more.
//  3. [Batch.Key] names the lines of a piece. The cursor knows where the pieces
//     end that are out, so they have the same keys after a kill. Where the
//     cursor is lost, pieces still end at the same places if they were full:
//     where a frame begins in another cell of a grid over its file.
//  4. Lines with a tag are handed out alone, with their tag.
//  5. Nothing that is damaged stops the spool: it is skipped, counted and
//     reported as a [Finding]. Lines carry running numbers, so the count is
//     exact wherever anything sound follows.
//
// The bytes are described in docs/FORMAT.md.
package spool
