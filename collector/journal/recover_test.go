package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/disktest"
	"github.com/rollway/rollway/internal/recordlog"
	"github.com/rollway/rollway/internal/testkit"
)

// memJournal is a journal on a disk in memory, closed: batches of 2 records,
// sealed into segments of `per` batches, the last one left open with `tail`.
func memJournal(t testing.TB, segments, per, tail int) *disktest.Mem {
	t.Helper()
	mem := disktest.NewMem()
	one := int64(frameHeaderSize + len(lines(0, 2).Lines))
	j, err := Open("/j", Options{Disk: mem, SegmentBytes: segmentHeaderSize + int64(per)*(one+16)})
	testkit.OK(t, err)
	for i := range segments*per + tail {
		mustAppend(t, j, lines(2*i, 2))
	}
	testkit.OK(t, j.Close())
	return mem
}

// crashed makes mem a journal whose process was killed: its manifest does not say
// at which offset it was closed.
func crashed(t testing.TB, mem *disktest.Mem) *disktest.Mem {
	t.Helper()
	m, err := readManifest(mem, "/j")
	testkit.OK(t, err)
	m.closed = false
	m.next += 1000
	if n := len(m.segs); n > 0 && m.segs[n-1].State == stateOpen { // written when that was made
		m.segs[n-1].End = m.segs[n-1].First
	}
	testkit.OK(t, mem.WriteFile("/j/"+manifestFile, m.append(nil)))
	return mem
}

// isSegment reports whether the path is that of a segment, and not of a manifest,
// which is written in the background.
func isSegment(path string) bool {
	return strings.HasSuffix(path, extOpen) || strings.HasSuffix(path, extSealed)
}

// readAll returns the offsets read from the start and the gaps met. It checks
// that each record is the one that was stored at its offset.
func readAll(t testing.TB, j *Journal) (offsets []uint64, gaps []*Gap) {
	t.Helper()
	r := j.NewReader(0)
	defer r.Close()
	for range 100_000 {
		f, ok, err := r.TryNext()
		var gap *Gap
		switch {
		case errors.As(err, &gap):
			gaps = append(gaps, gap)
			continue
		case err == io.EOF || err == nil && !ok:
			return offsets, gaps
		case err != nil:
			t.Fatal(err)
		}
		for i, line := range strings.SplitAfter(strings.TrimSuffix(string(f.Lines), "\n"), "\n") {
			offset := f.First + uint64(i)
			if n, _ := recordNumber(line); n != int(offset) {
				t.Fatalf("offset %d holds %q", offset, line)
			}
			offsets = append(offsets, offset)
		}
	}
	t.Fatal("the reader does not come to an end")
	return nil, nil
}

// recordNumber returns the number that lines gave a record.
func recordNumber(line string) (n int, err error) {
	_, after, _ := strings.Cut(line, `"n":`)
	_, err = fmt.Sscanf(after, "%d", &n)
	return n, err
}

func upTo(n uint64) []uint64 {
	s := make([]uint64, n)
	for i := range s {
		s[i] = uint64(i)
	}
	return s
}

func without(s []uint64, from, to uint64) []uint64 {
	return slices.DeleteFunc(slices.Clone(s), func(v uint64) bool { return from <= v && v < to })
}

const (
	seg0 = "/j/00000000000000000000.seg"
	seg1 = "/j/00000000000000000008.seg"
	last = "/j/00000000000000000016.open"
)

// edit replaces the bytes of a file.
func edit(t testing.TB, mem *disktest.Mem, name string, change func([]byte) []byte) {
	t.Helper()
	b, err := mem.ReadFile(name)
	testkit.OK(t, err)
	testkit.OK(t, mem.WriteFile(name, change(b)))
}

// Every row starts from two sealed segments of 8 records (4 frames) and an open
// one with 6 (3 frames), and corrupts the folder in one way. The journal was closed
// before that, or its process was killed: then the end that it had is not known.
func TestRecoveryTable(t *testing.T) {
	for name, killed := range map[string]bool{"closed": false, "killed": true} {
		t.Run(name, func(t *testing.T) { recoveryTable(t, killed) })
	}
}

func recoveryTable(t *testing.T, killed bool) {
	flip := func(pos int) func([]byte) []byte {
		return func(b []byte) []byte {
			if pos < 0 {
				pos += len(b)
			}
			b[pos] ^= 0x10
			return b
		}
	}
	frameAt := func(b []byte, n int) int { // position of frame n
		pos := segmentHeaderSize
		for range n {
			h, err := recordlog.ParseFrame(b[pos:])
			testkit.OK(t, err)
			pos += int(h.Size())
		}
		return pos
	}
	all := upTo(22)
	other, err := memJournal(t, 2, 4, 3).ReadFile(seg1)
	testkit.OK(t, err)
	rows := []struct {
		name     string
		corrupt  func(t *testing.T, mem *disktest.Mem)
		kinds    []FindingKind
		want     []uint64
		newest   bool // the newest segment is missing
		gaps     int
		next     uint64
		lasting  []FindingKind // findings of the start after that
		wantOpen string        // Open's error holds this
	}{
		{name: "nothing", corrupt: func(*testing.T, *disktest.Mem) {}, want: all, next: 22},
		{
			name: "bit flip in the last frame's body",
			corrupt: func(t *testing.T, mem *disktest.Mem) {
				edit(t, mem, last, flip(-5))
			},
			kinds: []FindingKind{recordlog.TornTail}, want: upTo(20), next: 20,
		}, {
			name: "bit flip in the middle frame's body",
			corrupt: func(t *testing.T, mem *disktest.Mem) {
				edit(t, mem, last, func(b []byte) []byte { return flip(frameAt(b, 1) + frameHeaderSize + 3)(b) })
			},
			kinds: []FindingKind{recordlog.Missing, recordlog.Damaged, recordlog.SetAside}, want: without(all, 18, 20), gaps: 1, next: 22,
		}, {
			name: "bit flip in the middle frame's header",
			corrupt: func(t *testing.T, mem *disktest.Mem) {
				edit(t, mem, last, func(b []byte) []byte { return flip(frameAt(b, 1) + 20)(b) })
			},
			kinds: []FindingKind{recordlog.Missing, recordlog.Damaged, recordlog.SetAside}, want: without(all, 18, 20), gaps: 1, next: 22,
		}, {
			name: "bit flip in the first frame",
			corrupt: func(t *testing.T, mem *disktest.Mem) {
				edit(t, mem, last, flip(segmentHeaderSize+30))
			},
			kinds: []FindingKind{recordlog.Missing, recordlog.Damaged, recordlog.SetAside}, want: without(all, 16, 18), gaps: 1, next: 22,
		}, {
			name: "zero tail",
			corrupt: func(t *testing.T, mem *disktest.Mem) {
				edit(t, mem, last, func(b []byte) []byte { return append(b, make([]byte, 100_000)...) })
			},
			kinds: []FindingKind{recordlog.TornTail}, want: all, next: 22,
		}, {
			name: "garbage tail with a magic in it",
			corrupt: func(t *testing.T, mem *disktest.Mem) {
				edit(t, mem, last, func(b []byte) []byte { return append(b, "garbage \xffRWF\xffRWF garbage"...) })
			},
			kinds: []FindingKind{recordlog.TornTail}, want: all, next: 22,
		}, {
			name: "tail of another segment's frames",
			corrupt: func(t *testing.T, mem *disktest.Mem) {
				old, _ := mem.ReadFile(seg0)
				edit(t, mem, last, func(b []byte) []byte { return append(b, old[segmentHeaderSize:]...) })
			},
			kinds: []FindingKind{recordlog.TornTail}, want: all, next: 22,
		}, {
			name: "frames of a stale block in the middle",
			corrupt: func(t *testing.T, mem *disktest.Mem) {
				old, _ := mem.ReadFile(seg0)
				edit(t, mem, last, func(b []byte) []byte {
					copy(b[frameAt(b, 1):frameAt(b, 2)], old[segmentHeaderSize:])
					return b
				})
			},
			kinds: []FindingKind{recordlog.Missing, recordlog.Damaged, recordlog.SetAside}, want: without(all, 18, 20), gaps: 1, next: 22,
		}, {
			name:    "empty open segment",
			corrupt: func(t *testing.T, mem *disktest.Mem) { mem.WriteFile(last, nil) },
			kinds:   []FindingKind{recordlog.EmptyRemoved}, want: upTo(16), next: 16,
		}, {
			name: "torn segment header",
			corrupt: func(t *testing.T, mem *disktest.Mem) {
				edit(t, mem, last, func(b []byte) []byte { return b[:40] })
			},
			kinds: []FindingKind{recordlog.EmptyRemoved}, want: upTo(16), next: 16,
		}, {
			name:    "open segment of zeros",
			corrupt: func(t *testing.T, mem *disktest.Mem) { mem.WriteFile(last, make([]byte, 9000)) },
			kinds:   []FindingKind{recordlog.EmptyRemoved}, want: upTo(16), next: 16,
		}, {
			name: "open segment of garbage",
			corrupt: func(t *testing.T, mem *disktest.Mem) {
				mem.WriteFile(last, []byte(strings.Repeat("no journal\n", 100)))
			},
			newest: true,
			kinds:  []FindingKind{recordlog.SetAside}, want: upTo(16), next: 16,
		}, {
			name:    "open segment's header is damaged",
			corrupt: func(t *testing.T, mem *disktest.Mem) { edit(t, mem, last, flip(3)) },
			kinds:   []FindingKind{recordlog.Damaged, recordlog.SetAside}, want: all, next: 22,
		}, {
			name:    "open segment with a header only",
			corrupt: func(t *testing.T, mem *disktest.Mem) { edit(t, mem, last, func(b []byte) []byte { return b[:64] }) },
			want:    upTo(16), next: 16,
		}, {
			name:    "sealed segment's header is damaged",
			corrupt: func(t *testing.T, mem *disktest.Mem) { edit(t, mem, seg0, flip(10)) },
			kinds:   []FindingKind{recordlog.Damaged}, want: all, next: 22, lasting: []FindingKind{recordlog.Damaged},
		}, {
			name: "bit flip in a sealed segment's body",
			corrupt: func(t *testing.T, mem *disktest.Mem) {
				edit(t, mem, seg1, func(b []byte) []byte { return flip(frameAt(b, 2) + 90)(b) })
			},
			want: without(all, 12, 14), gaps: 1, next: 22,
		}, {
			name: "bit flip in a sealed segment's frame header",
			corrupt: func(t *testing.T, mem *disktest.Mem) {
				edit(t, mem, seg1, func(b []byte) []byte { return flip(frameAt(b, 1) + 13)(b) })
			},
			want: without(all, 10, 12), gaps: 1, next: 22,
		}, {
			name: "bit flip in a sealed segment's last frame header",
			corrupt: func(t *testing.T, mem *disktest.Mem) {
				edit(t, mem, seg0, func(b []byte) []byte { return flip(frameAt(b, 3))(b) })
			},
			want: without(all, 6, 8), gaps: 1, next: 22,
		}, {
			name: "sealed segment cut in a frame",
			corrupt: func(t *testing.T, mem *disktest.Mem) {
				edit(t, mem, seg0, func(b []byte) []byte { return b[:frameAt(b, 2)+70] })
			},
			kinds: []FindingKind{recordlog.Shorter},
			want:  without(all, 4, 8), gaps: 1, next: 22,
		}, {
			name: "sealed segment with a garbage tail",
			corrupt: func(t *testing.T, mem *disktest.Mem) {
				edit(t, mem, seg0, func(b []byte) []byte { return append(b, "x\xffRWFy"...) })
			},
			kinds: []FindingKind{recordlog.Longer},
			want:  all, next: 22,
		}, {
			name:    "sealed segment of zero bytes",
			corrupt: func(t *testing.T, mem *disktest.Mem) { mem.WriteFile(seg0, nil) },
			kinds:   []FindingKind{recordlog.SetAside, recordlog.Missing}, want: without(all, 0, 8), gaps: 1, next: 22,
		}, {
			name:    "sealed segment missing in the middle",
			corrupt: func(t *testing.T, mem *disktest.Mem) { mem.Remove(seg1) },
			kinds:   []FindingKind{recordlog.Missing}, want: without(all, 8, 16), gaps: 1, next: 22, lasting: []FindingKind{recordlog.Missing},
		}, {
			name:    "open segment missing",
			corrupt: func(t *testing.T, mem *disktest.Mem) { mem.Remove(last) },
			newest:  true, want: upTo(16), next: 16,
		}, {
			name:    "sealed segment swapped",
			corrupt: func(t *testing.T, mem *disktest.Mem) { mem.WriteFile(seg1, other) },
			kinds:   []FindingKind{recordlog.Swapped}, want: all, next: 22,
		}, {
			name:    "oldest segment missing",
			corrupt: func(t *testing.T, mem *disktest.Mem) { mem.Remove(seg0) },
			kinds:   []FindingKind{recordlog.Missing}, want: without(all, 0, 8), gaps: 1, next: 22,
		}, {
			name:    "manifest missing",
			corrupt: func(t *testing.T, mem *disktest.Mem) { mem.Remove("/j/" + manifestFile) },
			kinds:   []FindingKind{recordlog.Rebuilt}, want: all, next: 22,
		}, {
			name:    "manifest damaged",
			corrupt: func(t *testing.T, mem *disktest.Mem) { edit(t, mem, "/j/"+manifestFile, flip(-1)) },
			kinds:   []FindingKind{recordlog.Rebuilt}, want: all, next: 22,
		}, {
			name: "manifest of a newer version",
			corrupt: func(t *testing.T, mem *disktest.Mem) {
				header := recordlog.Header{Kind: recordlog.Manifest, Version: 2}
				mem.WriteFile("/j/"+manifestFile, header.Append(nil))
			},
			wantOpen: "format version 2 is not known to this version",
		}, {
			name:    "sealed segments renamed to another's offset",
			corrupt: func(t *testing.T, mem *disktest.Mem) { mem.Rename(seg1, "/j/00000000000000000009.seg") },
			kinds:   []FindingKind{recordlog.SetAside, recordlog.Missing}, want: without(all, 8, 16), gaps: 1, next: 22,
			lasting: []FindingKind{recordlog.Missing},
		}, {
			name: "open and sealed segment of one name",
			corrupt: func(t *testing.T, mem *disktest.Mem) {
				b, _ := mem.ReadFile(seg1)
				mem.WriteFile("/j/00000000000000000008.open", b[:100])
			},
			kinds: []FindingKind{recordlog.SetAside}, want: all, next: 22,
		}, {
			name: "crash before the original of a repair was set aside",
			corrupt: func(t *testing.T, mem *disktest.Mem) {
				mem.WriteFile("/j/00000000000000000016.fix", []byte("half"))
			},
			want: all, next: 22,
		}, {
			name: "crash after the original of a repair was set aside",
			corrupt: func(t *testing.T, mem *disktest.Mem) {
				mem.Rename(last, "/j/00000000000000000016.fix")
			},
			kinds: []FindingKind{recordlog.NoFooter},
			want:  all, next: 22,
		}, {
			name: "two unsealed segments, the first torn",
			corrupt: func(t *testing.T, mem *disktest.Mem) {
				edit(t, mem, seg1, func(b []byte) []byte { return b[:frameAt(b, 4)-3] })
				mem.Rename(seg1, "/j/00000000000000000008.open")
			},
			kinds: []FindingKind{recordlog.TornTail, recordlog.Missing}, want: without(all, 14, 16), gaps: 1, next: 22,
			lasting: []FindingKind{recordlog.Missing},
		}, {
			name: "foreign files and folders",
			corrupt: func(t *testing.T, mem *disktest.Mem) {
				mem.WriteFile("/j/notes.txt", []byte("mine"))
				mem.WriteFile("/j/123.seg", []byte("mine"))
				mem.WriteFile("/j/99999999999999999999.seg", []byte("mine"))
				mem.MkdirAll("/j/00000000000000000099.seg", 0o750)
			},
			kinds: []FindingKind{recordlog.Foreign, recordlog.Foreign, recordlog.Foreign, recordlog.Foreign}, want: all, next: 22,
			lasting: []FindingKind{recordlog.Foreign, recordlog.Foreign, recordlog.Foreign, recordlog.Foreign},
		}, {
			name: "sealed segment of a newer version",
			corrupt: func(t *testing.T, mem *disktest.Mem) {
				edit(t, mem, seg0, func(b []byte) []byte {
					header := recordlog.Header{Kind: recordlog.JournalSegment, Version: 2}
					return append(header.Append(nil), b[64:]...)
				})
			},
			kinds: []FindingKind{recordlog.Newer}, next: 22, lasting: []FindingKind{recordlog.Newer},
		}, {
			name: "open segment of a newer version",
			corrupt: func(t *testing.T, mem *disktest.Mem) {
				edit(t, mem, last, func(b []byte) []byte {
					header := recordlog.Header{Kind: recordlog.JournalSegment, Version: 2}
					return append(header.Append(nil), b[64:]...)
				})
			},
			wantOpen: "format version 2 is not known to this version",
		},
	}
	base := memJournal(t, 2, 4, 3)
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			mem := base.KillClone()
			if killed {
				crashed(t, mem)
			}
			row.corrupt(t, mem)
			switch { // what the manifest knows to be missing at the end
			case row.next == 22 || row.wantOpen != "":
			case !killed:
				row.next, row.newest = 22, true
				row.kinds = append(row.kinds, recordlog.Missing)
			case row.newest:
				row.next = 1022
				row.kinds = append(row.kinds, recordlog.Missing)
			}
			if row.newest {
				row.lasting = append(row.lasting, recordlog.Missing)
				row.gaps++
			}
			if strings.HasPrefix(row.name, "crash after the original") {
				if _, err := openReadOnly(mem, "/j"); err == nil || !strings.Contains(err.Error(), "a repair that was interrupted") {
					t.Error(err)
				}
			} else if row.wantOpen == "" && row.name != "sealed segment of a newer version" {
				readOnlyAs(t, mem, row.want)
			}
			j, err := Open("/j", Options{Disk: mem})
			if row.wantOpen != "" {
				if err == nil || !strings.Contains(err.Error(), row.wantOpen) {
					t.Fatalf("Open: %v", err)
				}
				return
			}
			testkit.OK(t, err)
			checkKinds(t, j, row.kinds)
			if j.Next() != row.next {
				t.Errorf("Next is %d, want %d", j.Next(), row.next)
			}
			if row.name == "sealed segment of a newer version" {
				var newer *UnsupportedError
				for range 3 {
					if _, _, err := j.NewReader(0).TryNext(); !errors.As(err, &newer) {
						t.Fatal(err)
					}
				}
			} else {
				offsets, gaps := readAll(t, j)
				if !slices.Equal(offsets, row.want) || len(gaps) != row.gaps {
					t.Errorf("read %d in %d gaps, want %d in %d", offsets, len(gaps), row.want, row.gaps)
				}
				var missed uint64
				for _, g := range gaps {
					missed += g.Missed()
				}
				if got := uint64(len(offsets)) + missed; got != row.next {
					t.Errorf("read and missed are %d, want %d: %v", got, row.next, gaps)
				}
				// It goes on, and the repair holds.
				if first := mustAppend(t, j, lines(int(row.next), 3)); first != row.next {
					t.Errorf("appended at %d, want %d", first, row.next)
				}
			}
			testkit.OK(t, j.Close())
			j, err = Open("/j", Options{Disk: mem})
			testkit.OK(t, err)
			defer j.Close()
			checkKinds(t, j, row.lasting)
			if row.want != nil {
				if offsets, _ := readAll(t, j); len(offsets) != len(row.want)+3 {
					t.Errorf("after another start there are %d records, want %d", len(offsets), len(row.want)+3)
				}
			}
		})
	}
}

func checkKinds(t *testing.T, j *Journal, want []FindingKind) {
	t.Helper()
	var kinds []FindingKind
	for _, f := range j.Recovery().Findings {
		kinds = append(kinds, f.Kind)
		if f.String() == "" || f.File == "" {
			t.Errorf("finding %+v does not say what it is about", f)
		}
	}
	if !slices.Equal(kinds, want) {
		t.Errorf("findings %q, want %q", j.Recovery().Findings, want)
	}
}

// A crash may end the last frame at any byte.
func TestTornAtEveryByte(t *testing.T) {
	base := crashed(t, memJournal(t, 0, 4, 3))
	const name = "/j/00000000000000000000.open"
	whole, err := base.ReadFile(name)
	testkit.OK(t, err)
	frame := (len(whole) - segmentHeaderSize) / 3
	for cut := 1; cut <= len(whole); cut++ {
		mem := base.KillClone()
		mem.WriteFile(name, whole[:len(whole)-cut])
		j, err := Open("/j", Options{Disk: mem})
		testkit.OK(t, err)
		want := uint64(max(0, len(whole)-segmentHeaderSize-cut) / frame * 2)
		offsets, gaps := readAll(t, j)
		if !slices.Equal(offsets, upTo(want)) || len(gaps) > 0 || j.Next() != want {
			t.Fatalf("cut %d: read %d, next %d, want %d", cut, offsets, j.Next(), want)
		}
		left := len(whole) - cut - segmentHeaderSize
		if fs := j.Recovery().Findings; left > 0 && left%frame > 0 && (len(fs) != 1 || fs[0].Bytes != int64(left%frame) || fs[0].Pos != int64(segmentHeaderSize+left/frame*frame)) {
			t.Fatalf("cut %d: findings %v", cut, fs)
		}
		mustAppend(t, j, lines(int(want), 1))
		j.Close()
	}
}

// One flipped bit anywhere costs at most the frame it is in, and is reported.
func TestEveryFlippedBit(t *testing.T) {
	base := memJournal(t, 1, 3, 1) // 3 frames sealed, 1 open
	whole, _ := base.ReadFile(seg0)
	foot, err := recordlog.ReadFooter(bytes.NewReader(whole), "", int64(len(whole)))
	testkit.OK(t, err)
	frames := int(foot.FramesEnd())
	for pos := 0; pos < len(whole); pos++ {
		mem := base.KillClone()
		edit(t, mem, seg0, func(b []byte) []byte { b[pos] ^= 1 << (pos % 8); return b })
		j, err := Open("/j", Options{Disk: mem})
		testkit.OK(t, err)
		offsets, gaps := readAll(t, j)
		inFooter := pos >= frames
		if inFooter && len(offsets) != 8 || pos < segmentHeaderSize && len(offsets) != 8 && len(j.Recovery().Findings) == 0 ||
			pos >= segmentHeaderSize && !inFooter && (len(offsets) != 6 || len(gaps) != 1 || gaps[0].Missed() != 2) {
			t.Fatalf("bit in byte %d: read %d, gaps %v, findings %v", pos, offsets, gaps, j.Recovery().Findings)
		}
		if rep, err := audit(mem, "/j", AuditOptions{}); err != nil || len(rep.Damage(0)) == 0 {
			t.Fatalf("bit in byte %d: Audit finds no damage, %v", pos, err)
		}
		j.Close()
	}
}

func TestLockAndFolderErrors(t *testing.T) {
	dir := t.TempDir()
	j := mustOpen(t, dir, Options{})
	if _, err := Open(dir, Options{}); !errors.Is(err, disk.ErrLocked) || !strings.Contains(err.Error(), dir) {
		t.Fatalf("second Open: %v", err)
	}
	j.Close()
	mustOpen(t, dir, Options{}).Close()

	file := dir + "/LOCK/below"
	if _, err := Open(file, Options{}); err == nil || !strings.Contains(err.Error(), file) {
		t.Fatalf("folder below a file: %v", err)
	}
	for _, o := range []Options{{SegmentBytes: -1}, {RetainAge: -1}, {MaxGroupBytes: recordlog.MaxBody + 1}} {
		if _, err := Open(dir, o); err == nil {
			t.Errorf("options %+v were accepted", o)
		}
	}
}

func TestCursorAhead(t *testing.T) {
	j := mustOpen(t, t.TempDir(), Options{})
	mustAppend(t, j, lines(0, 5))
	r := j.NewReader(9)
	defer r.Close()
	_, _, err := r.TryNext()
	var gap *Gap
	if !errors.As(err, &gap) || gap.From != 9 || gap.To != 5 || gap.Missed() != 0 {
		t.Fatalf("%v", err)
	}
	mustAppend(t, j, lines(5, 1))
	f, err := r.Next(context.Background())
	if err != nil || f.First != 5 {
		t.Fatalf("%+v, %v", f, err)
	}
}

// Open waits for no fsync, whatever a kill has left; what it found is durable
// with the first record that is.
func TestOpenWaitsForNoFsync(t *testing.T) {
	for name, tail := range map[string]string{"clean": "", "torn": "torn tail"} {
		t.Run(name, func(t *testing.T) {
			mem := memJournal(t, 2, 4, 3)
			edit(t, mem, last, func(b []byte) []byte { return append(b, tail...) })
			testkit.OK(t, mem.Rename(seg1, strings.TrimSuffix(seg1, extSealed)+extOpen))
			release := make(chan struct{})
			opened := make(chan *Journal)
			go func() {
				j, err := Open("/j", Options{Disk: &disktest.Faulty{FS: mem, Hook: func(op disktest.Op) disktest.Fault {
					if op.Kind == disktest.Sync || op.Kind == disktest.SyncDir {
						<-release
					}
					return disktest.Fault{}
				}}})
				if err != nil {
					t.Error(err)
				}
				opened <- j
			}()
			var j *Journal
			select {
			case j = <-opened:
				close(release)
			case <-time.After(time.Minute):
				close(release)
				j = <-opened
				t.Error("Open waited for an fsync")
			}
			if j == nil {
				return
			}
			defer j.Close()
			b := lines(22, 2)
			b.Synced = true
			if first := mustAppend(t, j, b); first != 22 {
				t.Errorf("stored at %d", first)
			}
			after := mustOpen(t, "/j", Options{Disk: mem.PowerCutClone(nil)})
			if got, gaps := readAll(t, after); !slices.Equal(got, upTo(24)) || len(gaps) > 0 {
				t.Errorf("after a power cut: %v, %v", got, gaps)
			}
		})
	}
}

// A kill while the first frame of a segment was written leaves no record in it;
// what was cut cannot come back behind what is written in its place.
func TestCutToTheHeader(t *testing.T) {
	mem := crashed(t, memJournal(t, 1, 4, 1))
	name := "/j/00000000000000000008.open"
	whole, err := mem.ReadFile(name)
	testkit.OK(t, err)
	edit(t, mem, name, func(b []byte) []byte { return b[:len(b)-1] })
	j := mustOpen(t, "/j", Options{Disk: mem})
	checkKinds(t, j, []FindingKind{recordlog.TornTail})
	if first := mustAppend(t, j, lines(8, 1)); first != 8 {
		t.Fatalf("stored at %d", first)
	}
	testkit.OK(t, j.Close())
	edit(t, mem, name, func(b []byte) []byte { return append(b, whole[segmentHeaderSize:]...) })
	j = mustOpen(t, "/j", Options{Disk: mem})
	checkKinds(t, j, []FindingKind{recordlog.TornTail})
	if got, gaps := readAll(t, j); !slices.Equal(got, upTo(9)) || len(gaps) > 0 {
		t.Errorf("%v, %v", got, gaps)
	}
}

// A segment without a record, whose bytes a power cut has taken, may be all that
// tells at which offset the journal goes on.
func TestOffsetOutlivesEmptySegment(t *testing.T) {
	for name, content := range map[string][]byte{"empty": nil, "zeros": make([]byte, 4096), "a part of the header": []byte("\x89RWJ\r\n")} {
		mem := memJournal(t, 0, 0, 0)
		testkit.OK(t, mem.WriteFile("/j/00000000000000000100.open", content))
		for range 3 {
			j := mustOpen(t, "/j", Options{Disk: mem})
			if first, next := j.First(), j.Next(); first != 100 || next != 100 {
				t.Errorf("%s: from %d to %d, want 100", name, first, next)
			}
			testkit.OK(t, j.Close())
		}
		mem = mem.PowerCutClone(nil)
		j := mustOpen(t, "/j", Options{Disk: mem})
		if first := mustAppend(t, j, lines(100, 2)); first != 100 {
			t.Errorf("%s: the next record is at %d", name, first)
		}
	}
}

// What is set aside takes the place of nothing that was set aside before.
func TestSetAsideAgain(t *testing.T) {
	mem := memJournal(t, 1, 4, 3)
	for _, name := range []string{"/j/00000000000000000008.open.bad", "/j/00000000000000000008.open.bad-2"} {
		testkit.OK(t, mem.WriteFile(name, []byte(name)))
	}
	edit(t, mem, "/j/00000000000000000008.open", flipAt(segmentHeaderSize+5))
	j := mustOpen(t, "/j", Options{Disk: mem})
	if f := j.Recovery().Findings; !slices.ContainsFunc(f, func(f Finding) bool {
		return f.Kind == recordlog.SetAside && strings.Contains(f.Detail, "00000000000000000008.open.bad-3")
	}) {
		t.Error(f)
	}
	for _, name := range []string{"/j/00000000000000000008.open.bad", "/j/00000000000000000008.open.bad-2"} {
		if b, err := mem.ReadFile(name); err != nil || string(b) != name {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}
