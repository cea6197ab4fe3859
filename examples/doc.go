// Package examples holds programs to copy, one a folder:
//
//   - hello: a Logger by one call, as README shows it
//   - router: people read the console, machines read the file
//   - service: an HTTP service that ships its lines to a collector
//   - bulk: large records from many goroutines, past the page cache
//
// Code that keeps zap or zerolog and writes through a slab.Writer is in bench/examples,
// so that the library's module depends on neither. Every program is run by a test that
// checks what it writes.
package examples
