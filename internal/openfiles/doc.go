// Package openfiles tells how many files and sockets the process may have
// open, which bounds how many connections it takes.
package openfiles
