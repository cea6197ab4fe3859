package remote

import (
	"bytes"
	"crypto/sha256"
	"time"
)

const (
	maxFailures = 16 // requests that are known to have failed, and may be repeated
	// maxReturned is after how long the same bytes are new lines: a caller that
	// waits as long as a peer can ask for has come back before.
	maxReturned = 2 * maxRetryAfter
	headBytes   = 128
)

// returned are lines that went back to the caller of Write, whose request the
// peer may have taken. They are known again when a Write begins with them.
type failedLines struct {
	size  int // bytes; 0 if there are none
	sum   [sha256.Size]byte
	head  []byte // their beginning, which spares most lines that are others a hash
	since time.Time
}

func rememberFailed(p []byte) failedLines {
	return failedLines{len(p), sha256.Sum256(p), bytes.Clone(p[:min(len(p), headBytes)]), time.Now()}
}

// begins reports whether p begins with the lines of r.
func (r *failedLines) begins(p []byte) bool {
	return r.size > 0 && r.size <= len(p) && bytes.HasPrefix(p, r.head) && time.Since(r.since) < maxReturned && sha256.Sum256(p[:r.size]) == r.sum
}
