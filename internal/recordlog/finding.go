package recordlog

import (
	"fmt"
	"strings"
	"time"
)

// Finding is one irregularity in a folder.
type Finding struct {
	Kind      FindingKind
	File      string // name in the folder
	Pos       int64  // position in the file, bytes
	Bytes     int64  // concerned
	From, To  uint64 // numbers of missing records; equal: none, or unknown
	Lines     uint64 // concerned
	Estimated bool   // Lines is a count of line ends
	Detail    string
	Seen      time.Time // when it was kept; zero: it is as it was now
}

type FindingKind string

// The kinds of findings.
const (
	TornTail     FindingKind = "torn tail cut"      // an interrupted append
	EmptyRemoved FindingKind = "empty file removed" // a segment without a record
	Damaged      FindingKind = "damaged"            // wrong checksum or structure; skipped
	SetAside     FindingKind = "set aside as .bad"  // kept, and no longer read
	Missing      FindingKind = "records missing"
	NoFooter     FindingKind = "no sound footer" // of a sealed segment, which is still read
	Rebuilt      FindingKind = "rebuilt"         // from the other files
	Shorter      FindingKind = "shorter than it was"
	Longer       FindingKind = "longer than it was"
	Swapped      FindingKind = "not the segment that the manifest lists"
	CursorLost   FindingKind = "cursor not read"
	Deleted      FindingKind = "deleted meanwhile"    // by retention, while the folder was read
	Gone         FindingKind = "removed while in use" // its name; what is stored in it may still be read
	Foreign      FindingKind = "foreign file"         // left alone
	Newer        FindingKind = "written by another version"
)

// FolderKinds are the kinds of what others may have done to a folder.
var FolderKinds = []FindingKind{Damaged, Missing, Shorter, Longer, Swapped, Rebuilt, Gone, Foreign}

// Harmless reports whether an interrupted process may leave f.
func (f *Finding) Harmless() bool {
	switch f.Kind {
	case TornTail, EmptyRemoved, Deleted, Foreign, SetAside, NoFooter:
		return true
	}
	return false
}

// String returns the finding as a sentence for a log.
func (f Finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", f.File, f.Kind)
	if f.Bytes > 0 {
		fmt.Fprintf(&b, ", %d bytes at byte %d", f.Bytes, f.Pos)
	}
	if f.From < f.To {
		fmt.Fprintf(&b, ", offsets %d to %d are not there", f.From, f.To-1)
	}
	if f.Lines > 0 {
		about := ""
		if f.Estimated {
			about = "about "
		}
		fmt.Fprintf(&b, ", %s%d lines", about, f.Lines)
	}
	if f.Detail != "" {
		fmt.Fprintf(&b, ", %s", f.Detail)
	}
	if !f.Seen.IsZero() {
		fmt.Fprintf(&b, ", found at %s", f.Seen.Format(time.DateTime))
	}
	return b.String()
}
