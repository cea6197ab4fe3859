package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/logfile"
)

// A position records how far one collector acknowledged one file. It follows a renamed
// file where the system has inode numbers. It is a small JSON file, replaced atomically
// but not synced: after a crash of the machine some lines may be sent twice.
type position struct {
	Addr    string `json:"addr"`
	Journal string `json:"journal"` // of the collector; empty: unknown
	File    string `json:"file"`    // absolute

	// Identity of the file.
	Inode   uint64 `json:"inode"` // 0: none on this system
	Size    int64  `json:"size"`
	Head    string `json:"head"`     // SHA-256 of its first bytes
	HeadLen int    `json:"head_len"` // how many

	Lines     int    `json:"lines"`      // acknowledged or refused
	Offset    int64  `json:"offset"`     // after them, in decompressed bytes
	Tail      string `json:"tail"`       // SHA-256 of the last bytes before Offset; empty for a compressed file
	TailStart int64  `json:"tail_start"` // start of the last one if it had no end, else -1

	path      string
	restarted string // why an earlier position was discarded; empty: it was not
	rest      string // new name of the replaced file, if that has unsent lines
	failed    error  // result of the last save
}

// loadPosition reads the position of in for the collector at addr with the given
// journal, and locks in until it is closed. The error is disk.ErrLocked if another run
// has the lock. dir is the folder of all positions; empty: the default.
func loadPosition(dir, addr, journal string, in *input) (*position, error) {
	if in.stream {
		return nil, errors.New("not a regular file")
	}
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("find a folder for positions: %w (name one with -state)", err)
		}
		dir = filepath.Join(cache, "rollway", "send")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder for positions: %w", err)
	}
	abs, err := filepath.Abs(in.name)
	if err != nil {
		return nil, err
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real
	}
	head, headLen, err := in.sum(0, headBytes)
	if err != nil {
		return nil, fmt.Errorf("read the file's beginning: %w", err)
	}
	now := &position{
		Addr: addr, Journal: journal, File: abs, Inode: inode(abs, in.info), Size: in.size, Head: head, HeadLen: headLen, TailStart: -1,
		path: pathOf(dir, addr, abs, ".json"),
	}
	if in.lock, err = lockInput(dir, now); err != nil {
		return nil, err
	}
	old, err := readPosition(now.path)
	if err == nil && old.Inode != 0 && now.Inode != 0 && old.Inode != now.Inode {
		// The file was renamed, as in a rotation: keep its position for its new name.
		if err = os.Rename(now.path, fmt.Sprintf("%s-%x.json", strings.TrimSuffix(now.path, ".json"), old.Inode)); err != nil {
			return nil, fmt.Errorf("keep the position of the previous file: %w", err)
		}
		now.restarted, now.rest = "it was replaced by another file of that name", old.renamedTo()
		err = os.ErrNotExist
	}
	if errors.Is(err, os.ErrNotExist) {
		if old = in.elsewhere(dir, now); old == nil {
			return now, nil
		}
		now.restarted, err = "", nil
	}
	if err != nil || old.Addr != addr || old.Lines < 0 || old.Offset < 0 {
		now.restarted = "the saved position cannot be read"
		return now, nil
	}
	if now.restarted, err = in.differs(old, now); err != nil || now.restarted != "" {
		return now, err
	}
	if now.Journal == "" {
		now.Journal = old.Journal
	}
	now.Lines, now.Offset, now.Tail, now.TailStart = old.Lines, old.Offset, old.Tail, old.TailStart
	return now, nil
}

// lockInput locks the file of p, by inode where there is one, for its collector.
func lockInput(dir string, p *position) (disk.Lock, error) {
	id := p.File
	if p.Inode != 0 {
		id = strconv.FormatUint(p.Inode, 10)
	}
	lock, err := disk.Real{}.Lock(pathOf(dir, p.Addr, id, ".lock"), 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock its position: %w", err)
	}
	return lock, nil
}

func pathOf(dir, addr, file, ext string) string {
	sum := sha256.Sum256([]byte(addr + "\x00" + file))
	return filepath.Join(dir, hex.EncodeToString(sum[:12])+ext)
}

// readPosition reads a position; os.ErrNotExist: it does not exist.
func readPosition(path string) (*position, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	p := new(position)
	return p, json.Unmarshal(text, p)
}

// inode returns the number of a file; 0: it has none.
func inode(path string, info os.FileInfo) uint64 {
	_, n, _ := logfile.IdentityAt(path, info)
	return n
}

// renamedTo returns the current name of p's file in its folder, if the file has unsent
// bytes.
func (p *position) renamedTo() string {
	entries, _ := os.ReadDir(filepath.Dir(p.File)) // only for a hint
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && info.Mode().IsRegular() && info.Size() > p.Offset && inode(filepath.Join(filepath.Dir(p.File), e.Name()), info) == p.Inode {
			return e.Name()
		}
	}
	return ""
}

// elsewhere finds the position saved under the file's previous name, and renames it.
func (in *input) elsewhere(dir string, now *position) *position {
	entries, _ := os.ReadDir(dir) // an unreadable folder has none
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		p, err := readPosition(name)
		if err != nil || p.Addr != now.Addr || p.Inode == 0 || p.Inode != now.Inode {
			continue
		}
		if there, err := os.Stat(p.File); err == nil && inode(p.File, there) == p.Inode && !os.SameFile(there, in.info) {
			continue // on another file system
		}
		if why, err := in.differs(p, now); err != nil || why != "" {
			continue
		}
		if os.Rename(name, now.path) == nil {
			return p
		}
	}
	return nil
}

// differs says why the file is not the one that old was saved for; empty if it is.
func (in *input) differs(old, now *position) (string, error) {
	switch {
	case old.Lines == 0:
		return "", nil
	case old.Journal != "" && now.Journal != "" && old.Journal != now.Journal:
		return "the collector has a new journal", nil
	case now.Size < old.Size:
		return fmt.Sprintf("it was truncated or replaced (%s, was %s)", byteCount(now.Size), byteCount(old.Size)), nil
	}
	if head, _, err := in.sum(0, old.HeadLen); err != nil {
		return "", fmt.Errorf("read the file's beginning: %w", err)
	} else if head != old.Head {
		return "its beginning has changed", nil
	}
	if old.Tail == "" {
		return "", nil
	}
	if tail, err := in.tail(old.Offset); err != nil {
		return "", fmt.Errorf("read the part sent last: %w", err)
	} else if tail != old.Tail {
		return "the part that was sent has changed", nil
	}
	return "", nil
}

func (p *position) reset() { p.Lines, p.Offset, p.Tail, p.TailStart = 0, 0, "", -1 }

// advance moves p to the lines consumed from in.
func (p *position) advance(in *input) {
	p.Lines, p.Offset, p.TailStart = in.lines, in.offset, in.tailStart
	if in.unpacker == nil {
		p.Size = max(p.Size, in.offset) // it may have grown since it was opened
		p.Tail, _ = in.tail(in.offset)  // without it the next run compares only the beginning
	}
}

func (p *position) save() error {
	text, err := json.Marshal(p)
	tmp := fmt.Sprintf("%s.%d.tmp", p.path, os.Getpid())
	if err == nil {
		err = os.WriteFile(tmp, text, 0o600)
	}
	if err == nil {
		err = os.Rename(tmp, p.path)
	}
	if err != nil {
		os.Remove(tmp)
		return fmt.Errorf("save the position: %w", err)
	}
	return nil
}
