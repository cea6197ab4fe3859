// Package spool keeps batches of whole lines on disk, first in first out, for
// a peer that is away: bounded, owned by one process at a time, and readable
// after that process was killed.
//
// # What is promised
//
//  1. When [Spool.Append] returns nil, the lines are with the kernel: they
//     survive the death of the process. After [Spool.Sync] they survive a power
//     cut too. After an error none of them is stored; only if the disk refused
//     to take back what was written, and the process dies before a later Append
//     has stored lines, or Close fails, or the power does, may they be found by
//     the next Open.
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
//  4. Nothing that is damaged stops the spool: it is skipped, counted and
//     reported as a [Finding]. Lines carry running numbers, so the count is
//     exact wherever anything sound follows. At the end it is as exact as the
//     cursor's number of the next line, which Append writes every 100 ms, and
//     Next, Ack, Sync and Close too. Lines that were stored and that no file
//     has, from the cursor's line on, count in Recovered and as Damaged. A
//     power cut may keep newer files than the cursor, or a newer cursor than
//     the files: then lines that were settled may count as well.
//  5. A folder has one owner, who holds its LOCK. Once a second Append and Next
//     look whether LOCK still is that file. If not, the folder was removed,
//     renamed or replaced: Append fails, and the spool makes and removes
//     nothing there. What it has stored it hands out all the same, from open
//     files. When the folder is back, Append works again. If the segment that
//     takes appends has lost its name, a new one is begun; a CURSOR that has is
//     written anew.
//  6. A name that is no regular file is not opened. LOCK makes Open fail;
//     others are set aside as .bad.
//
// The bytes are described in docs/FORMAT.md.
package spool
