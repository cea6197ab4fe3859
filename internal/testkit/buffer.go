package testkit

import (
	"bytes"
	"sync"
)

// A Buffer is a bytes.Buffer that is safe for concurrent use. The zero value is
// empty.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

// Write appends p.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String returns everything written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Tail returns the last n bytes of String, or all if there are fewer.
func (b *Buffer) Tail(n int) string {
	text := b.String()
	return text[max(0, len(text)-n):]
}
