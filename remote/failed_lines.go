package remote

import (
	"bytes"
	"crypto/sha256"
	"time"
)

const (
	maxFailures = 16 // requests that are known to have failed, and may be repeated
	// maxReturned is the time after which the same bytes count as new lines. It is
	// longer than a peer can ask a caller to wait.
	maxReturned = 2 * maxRetryAfter
	headBytes   = 128
)

// failedLines are lines that went back to the caller of Write after their request, which
// the peer may have stored, has failed. They are recognized when a Write begins with them.
type failedLines struct {
	size  int // bytes; 0 if there are none
	sum   [sha256.Size]byte
	head  []byte // their beginning, compared first to save a hash
	since time.Time
}

func rememberFailed(p []byte) failedLines {
	return failedLines{len(p), sha256.Sum256(p), bytes.Clone(p[:min(len(p), headBytes)]), time.Now()}
}

// begins reports whether p begins with the lines of r.
func (r *failedLines) begins(p []byte) bool {
	return r.size > 0 && r.size <= len(p) && bytes.HasPrefix(p, r.head) && time.Since(r.since) < maxReturned && sha256.Sum256(p[:r.size]) == r.sum
}
