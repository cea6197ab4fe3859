// Package filters tells which frames of a segment cannot have what a query looks for.
//
// For each frame there are two sets: the trigrams (three bytes in a row) of its lines, and
// the whole values of its fields. Both are Bloom filters (Bloom, CACM 1970): they may take a
// frame for one that has something, and never leave out one that has it. Up to 64 frames are a group.
// Its sets are stored as rows of 64 bits, one bit for each frame, so that one row answers for
// the whole group. The rows for one value are on one page (Putze, Sanders, Singler, 2007).
//
// A trigram has one row. As a text of n bytes has n-2 of them, one row is enough. A value
// has several rows. Numbers that are equal are one value, however they are written. A text
// with escapes is taken with and without them.
//
//	Section of filters
//	  length of the head, 4 bytes; CRC-32C of the head, 4 bytes
//	  the head: unsigned varints, except checksums
//	    number of groups, and of each of them:
//	      number of frames
//	      their first records' numbers, each as its difference to the one before
//	      bits for the frames whose values are not known, 8 bytes
//	      number of pages; the first 128 are of trigrams, the others of values
//	      of each page: its length as stored; CRC-32C of what is stored, 4 bytes
//	  the pages of all groups, each 4096 bytes, or a zstd frame if that is shorter
//
//	Page: 512 rows of 8 bytes
//
// The row of a trigram is the upper 16 bits of its three bytes, as a little-endian number,
// times 9E3779B1h modulo 2^32. A value is known by its xxHash64 h: it is on page
// floor(h * pages / 2^64), in the five rows that bits 0-8, 9-17, 18-26, 27-35 and 36-44 of
// h * 9E3779B97F4A7C15h modulo 2^64 name.
package filters

const (
	groupFrames = 64
	pageRows    = 512
	pageBytes   = 8 * pageRows

	trigramRows  = 1 << 16
	trigramPages = trigramRows / pageRows

	valueRows = 5        // of a value
	valueBits = 10       // of a page for each value, in the frame that has the most
	maxValue  = 64       // bytes of a value that is in the set
	maxValues = 32 << 10 // of a frame, beyond which they are not known

	worth = 16 // times the bytes of its pages a group has of lines; else it is left out

	pageHead = 5       // least bytes of the head for a page
	maxHead  = 4 << 20 // groups that come later are left out
)

// rowOf returns the row of a trigram.
func rowOf(trigram uint32) uint16 { return uint16(trigram * 0x9E3779B1 >> 16) }
