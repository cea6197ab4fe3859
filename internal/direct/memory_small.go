//go:build unix && !linux && !race && !aix && !solaris

package direct

func largePages([]byte) {}
