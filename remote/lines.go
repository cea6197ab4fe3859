package remote

import "bytes"

// wholeLines is the length of p up to and with its last line end.
func wholeLines(p []byte) int { return bytes.LastIndexByte(p, '\n') + 1 }

// firstPiece returns the beginning of p, which ends in a line end: as many
// whole lines as fit in limit bytes, and at least one.
func firstPiece(p []byte, limit int) []byte {
	if len(p) <= limit {
		return p
	}
	if n := wholeLines(p[:limit]); n > 0 {
		return p[:n]
	}
	return p[:bytes.IndexByte(p, '\n')+1]
}
