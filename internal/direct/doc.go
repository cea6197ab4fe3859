// Package direct appends text to a file past the page cache.
//
// Direct I/O needs whole blocks at aligned offsets from aligned memory, and text does not
// come in blocks. A Tail bridges the difference:
//
//   - Small buffers are copied after the last, partly filled block and written with it as
//     whole blocks. The rest goes through the page cache; the next write begins with that
//     block again.
//   - A large aligned buffer with room after its end is written without a copy. If it is the
//     last one of a write, its rest goes through the page cache too. Before another large
//     buffer, white space fills its last block: spaces before the last newline, or a line of
//     spaces; less than one block in a mebibyte. A reader of JSON skips them.
//
// A Tail never writes a zero byte, and the file never has bytes that are removed later or
// ends with white space: a program that follows it, like tail -f, reads each byte once.
//
// An Appender is for files that have other writers. It does not know the end of the file,
// so it cannot bypass the page cache, but can write Uncached.
//
// With Direct, a reader of the growing file may briefly see zero bytes after the previous
// end, up to the end of that page: Linux extends the file before it drops its copy of the
// last page. They are gone at the next read. A program that follows the file must read
// again, or the file be written Uncached.
//
// Cut has the same effect in every mode: the system puts zeros after the new end, and a
// read that began with the old size copies them. On a full ext4 with 40 cuts a second and
// more, 2 of 50,000 reads beside Uncached writes saw zeros, and none of 137,000 beside
// Buffered ones.
package direct
