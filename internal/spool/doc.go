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
//     same ones again. [Spool.Ack] settles them. What is settled is written to
//     the cursor file at least once a second while acks come, and by Close: a
//     process that is killed delivers again what it settled after that.
//  3. The lines that one Peek returns after a restart are those it returned
//     before, unless more lines were appended behind them within the same 256
//     KiB of the file, or a part was settled. [Batch.Key] names them.
//  4. A batch with a tag is returned alone, with its tag.
//  5. Nothing that is damaged stops the spool: it is skipped, counted and
//     reported as a [Finding]. Lines carry running numbers, so the count is
//     exact wherever anything sound follows.
//
// The bytes are described in docs/FORMAT.md.
package spool
