// Package examples holds programs to copy, one a folder:
//
//   - hello: a Logger by one call, as README shows it
//   - slogdefault: log/slog as it is, writing through package rollway
//   - router: people read the console, machines read the file
//   - service: an HTTP service that ships its lines to a collector
//   - bulk: large records from many goroutines, past the page cache
//
// Programs that keep zap or zerolog and write through a slab.Writer are in
// bench/examples, so that the library's module depends on neither. Every
// program is run by a test that checks what it writes.
package examples
