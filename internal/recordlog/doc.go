// Package recordlog is the codec of the files that the project writes: files of checksummed
// records in segments, and small files that are replaced as a whole.
//
// Every file begins with a [Header], whose magic number names its [Kind]. A segment
// continues with frames, each a [Frame] header and a body of lines, and ends in a [Footer]
// once it is sealed. A [Walker] steps over frames and finds the next sound one after
// damage, [Scan] reads a whole segment, and [Inspect] reports what a file is and what is
// wrong with it.
//
// Packages journal and spool keep their segments in this form. A slab file, which is
// mapped, has the header alone. The bytes are described in docs/FORMAT.md.
package recordlog
