package logfile

import (
	"bytes"
	"fmt"
	"io"
)

// SearchLimit is how far from the end of a file LastLineEnd looks at least, in
// bytes. A file without a line end there is not a log.
const SearchLimit = 16 << 20

// LastLineEnd returns the offset behind the last line end in the first size
// bytes of r, 0 if there is none. It looks no further than longest, the bytes of
// the longest line there may be, or SearchLimit if that is more.
func LastLineEnd(r io.ReaderAt, size, longest int64) (int64, error) {
	limit := max(longest, SearchLimit)
	buf := make([]byte, min(size, 64<<10))
	for end := size; end > 0; {
		if size-end >= limit {
			return 0, fmt.Errorf("no line end in its last %d bytes: this is not a log file, and nothing of it was changed; move it away or give another path", limit)
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
