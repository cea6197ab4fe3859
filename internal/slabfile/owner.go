package slabfile

import (
	"hash/crc32"
	"time"
)

// putOwner fills p, which has room for the longest name.
func putOwner(p []byte, pid int, opened int64, name string) {
	native.PutUint32(p[20:], 0)
	native.PutUint64(p[0:], uint64(pid))
	native.PutUint64(p[8:], uint64(opened))
	native.PutUint32(p[16:], uint32(len(name)))
	clear(p[ownerHead:])
	copy(p[ownerHead:], name)
	native.PutUint32(p[20:], ownerSum(p, len(name)))
}

func ownerSum(p []byte, n int) uint32 {
	return crc32.Update(sum(p[:20]), castagnoli, p[ownerHead:ownerHead+n])
}

// parseOwner is the zero Owner if a kill came while it was written.
func parseOwner(p []byte) Owner {
	n := int64(native.Uint32(p[16:]))
	if n > maxOwnerName || native.Uint32(p[20:]) != ownerSum(p, int(n)) {
		return Owner{}
	}
	return Owner{
		PID:    int(native.Uint64(p[0:])),
		Opened: time.Unix(0, int64(native.Uint64(p[8:]))),
		Name:   string(p[ownerHead : ownerHead+n]),
	}
}
