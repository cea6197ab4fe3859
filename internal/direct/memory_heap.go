//go:build !unix || race || aix || solaris

package direct

func allocate(n int) (mapped, used []byte, err error) { return nil, onHeap(n), nil }

func release([]byte) error { return nil }

func onHeap(n int) []byte {
	b := make([]byte, n+Align)
	skip := -address(b) & (Align - 1)
	return b[skip : skip+n : skip+n]
}
