package slabfile

import (
	"fmt"
	"hash/crc32"
	"time"
)

// Owner names the process that filled the slabs of a file.
type Owner struct {
	PID    int // 0: unknown
	Name   string
	Opened time.Time
}

func (o Owner) String() string {
	if o.PID == 0 {
		return "an unknown process"
	}
	return fmt.Sprintf("%s (process %d, started to use it at %s)", o.Name, o.PID, o.Opened.UTC().Format(time.RFC3339))
}

// bytes is o as the header has it. A long name is cut.
func (o Owner) bytes() []byte {
	name := o.Name[:min(len(o.Name), maxOwnerName)]
	p := native.AppendUint64(nil, uint64(o.PID))
	p = native.AppendUint64(p, uint64(o.Opened.UnixNano()))
	p = native.AppendUint32(p, uint32(len(name)))
	p = append(native.AppendUint32(p, 0), name...)
	native.PutUint32(p[20:], ownerSum(p))
	return p
}

func ownerSum(p []byte) uint32 { return crc32.Update(sum(p[:20]), castagnoli, p[ownerHead:]) }

// parseOwner is the zero Owner if a kill came while it was written.
func parseOwner(p []byte) Owner {
	n := int64(native.Uint32(p[16:]))
	if n > maxOwnerName || native.Uint32(p[20:]) != ownerSum(p[:ownerHead+n]) {
		return Owner{}
	}
	return Owner{
		PID:    int(native.Uint64(p[0:])),
		Opened: time.Unix(0, int64(native.Uint64(p[8:]))),
		Name:   string(p[ownerHead : ownerHead+n]),
	}
}
