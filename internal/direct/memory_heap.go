//go:build !unix || race || aix || solaris

package direct

func allocate(n int) ([]byte, error) { return onHeap(n), nil }

func release([]byte) error { return nil }
