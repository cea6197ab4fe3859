// Package columns stores canonical lines as columns, and gives them back byte for byte.
//
// A line is a shape and values. The shape is the text of the line with a hole for each
// value: its keys, their order and nesting. A value is the raw text between a colon and
// the next comma or brace, so that a line is rebuilt by joining pieces. The values of one
// key, in the order of lines, are a column, and each column is stored in the form that
// suits it: texts are split into templates and variables, as CLP does (Rodrigues, Luo,
// Yuan, OSDI 2021), and the lines of one shape share it, as in µSlope (Wang and others,
// OSDI 2024). A line that is not a plain JSON object is the value of a hole of its own.
//
//	Block
//	  1 byte: 0 = the rest is one zstd frame with the lines; 1 = columns
//	  the directory: length, length as stored, bytes
//	  the chunks of all columns
//
//	Directory; numbers are unsigned varints
//	  number of lines
//	  number of shapes, and of each its length and text; a hole is a byte 00
//	  number of columns, and of each: number of values, position of its first chunk,
//	  length of its head, head. First comes the column of shapes: the index of the shape
//	  of each line, as integers. The others are in the order of their first holes.
//
//	Stream: twice the length, and the bytes; or twice the length plus 1 and the length as
//	stored: the bytes are the column's next chunk
//
//	Head of a column
//	  1 byte: form
//	  0 constant: a string
//	  1 strings: integers, their lengths; a stream, their bytes
//	  2 dictionary: number of strings; the strings in form 1; integers, the index of each value
//	  3 integers, in decimal: number of fraction digits; integers
//	  4 digits, filled up with zeros: their number; integers
//	  5 times, as in canonical lines with their quotes: integers, nanoseconds since 1970
//	  6 hexadecimal digits: their number, which is even; a stream, two digits a byte
//	  7 texts: number of templates, the templates in form 1; integers, the index of the
//	    template of each value, plus 1; columns without a length: the values of index 0,
//	    then of each template and hole its values. A hole has a run of ASCII
//	    letters and digits, with a digit; next to a letter in the template, digits alone
//
//	Integers
//	  1 byte: w + 16 * d + 32 * s, where w is their width in bytes, d is 1 if all but the
//	  first are differences from the one before, s is a power of 1000 that divides them
//	  signed varint: the least of them
//	  of each byte of the width, the lowest first, a stream: that byte of each integer less
//	  the least, divided
//
// Lengths as stored that equal the length mean that the bytes are as they are; otherwise
// they are one zstd frame.
package columns
