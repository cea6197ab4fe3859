package logfile

import (
	"bytes"
	"fmt"
	"io"
)

// SearchLimit bounds the search of LastLineEnd, in bytes. A file without a line end there
// is no log.
const SearchLimit = 64 << 20

// LastLineEnd returns the offset after the last line end in the first size bytes of r, or
// 0.
func LastLineEnd(r io.ReaderAt, size int64) (int64, error) {
	buf := make([]byte, min(size, 64<<10))
	for end := size; end > 0; {
		if size-end >= SearchLimit {
			return 0, fmt.Errorf("no line end in its last %d bytes: this is not a log file, and nothing of it was changed; move it away or give another path", SearchLimit)
		}
		begin := max(0, end-int64(len(buf)))
		part := buf[:end-begin]
		if n, err := r.ReadAt(part, begin); n < len(part) {
			return 0, fmt.Errorf("read the end of the file: %w", err)
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			return begin + int64(i) + 1, nil
		}
		end = begin
	}
	return 0, nil
}
