// Package framed is a file format for records of any bytes that are written in
// large batches, past the page cache if need be, into files that are used
// again and again.
//
// A record is framed the moment it is copied into a buffer, when it is not
// known yet into which file the buffer will go: its checksum is seeded with the
// number of the batch that the buffer becomes. When the buffer is full, its
// first bytes become the batch header, which says where it belongs. Header and
// matching records together are the mark that the batch is complete.
//
// A [Reader] delivers no record but those that were written to this file since
// it was begun, each whole. What is behind the last batch may be anything, also
// batches of an earlier use of the file at the very places where new ones would
// be. What is missing is reported as a [Finding], with the number of records
// wherever something sound follows.
//
// The bytes are described in docs/FORMAT.md.
package framed
