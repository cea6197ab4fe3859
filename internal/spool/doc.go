// Package spool keeps batches of whole lines on disk, first in first out, for a peer that
// is away. It is bounded, has one owner, and is readable after its process was killed.
//
// # What is promised
//
//  1. When [Spool.Append] returns nil, the lines are with the kernel and survive the
//     process; after [Spool.Sync] they survive a power cut too. After an error none of them
//     is stored. Exception: the disk refuses to remove what was written, and before a later
//     Append has stored lines the process dies, Close fails or the power does. Then the next
//     Open may find them.
//  2. [Spool.Next] hands out the oldest lines in pieces, up to [MaxInFlight] at a time;
//     [Spool.Ack] settles them in any order. Both are in the cursor file, which is with the
//     kernel when they return. After a kill, Next hands out again the pieces that were not
//     settled and those settled after an older one that was not: the rest of the oldest
//     piece, the others whole. After a power cut it may be more.
//  3. [Batch.Key] names the lines of a piece. The cursor has the ends of the pieces that
//     are out, so they have the same keys after a kill. Without the cursor, full pieces
//     still end at the same places, those of a grid over the file.
//  4. Damage never stops the spool: it is skipped, counted and reported as a [Finding].
//     Lines are numbered, so the count is exact if anything sound follows. At the end it is
//     as exact as the cursor's number of the next line, which Append writes every 100 ms,
//     and Next, Ack, Sync and Close too. Lines from the cursor's line on that no file has
//     count in Recovered and as Damaged. After a power cut cursor and files may differ in
//     age; then lines that were settled may count as well.
//  5. A folder has one owner, who locks LOCK. Once a second Append and Next check that LOCK
//     is still that file. If not, the folder was removed, renamed or replaced: Append fails,
//     no file is made or removed there, and Next reads from open files. When the folder is
//     back, Append works again. A segment that has lost its name gets no more appends; a
//     CURSOR that has is written anew.
//  6. A name that is no regular file is not opened. LOCK makes Open fail; others are set
//     aside as .bad.
//
// The bytes are described in docs/FORMAT.md.
package spool
