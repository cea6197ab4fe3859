// Package segment appends whole lines to a file by package direct, and goes on
// in a new file when the one in use is full or has failed.
//
// The path always names the file in use. One that is done is renamed to
// NAME-MOMENT-INODE.EXT, as package file does it, and no name is given twice.
//
// What a Log returns from a write is always a line end: of a line that did not
// get through whole, the part is cut off again. So the caller may give the rest
// to any file, and the Log may change files between any two calls.
package segment
