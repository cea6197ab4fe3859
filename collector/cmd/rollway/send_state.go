package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// A position is how far one file was acknowledged by one collector. It is kept
// as a small JSON file, written to a temporary name and renamed: a reader sees
// the old or the new one. It is not forced to the disk; after a crash of the
// machine some lines may be sent twice.
type position struct {
	Addr    string `json:"addr"`
	Journal string `json:"journal"` // of the collector; empty: it did not say
	File    string `json:"file"`    // absolute

	// What the file is known again by.
	Inode   uint64 `json:"inode"` // 0: the system has none
	Size    int64  `json:"size"`
	Head    string `json:"head"`     // SHA-256 of its first bytes
	HeadLen int    `json:"head_len"` // how many

	Lines     int   `json:"lines"`      // acknowledged or refused
	Offset    int64 `json:"offset"`     // behind them, in unpacked bytes
	TailStart int64 `json:"tail_start"` // start of the last one if it had no end; -1

	path      string
	restarted string // why an earlier position is of no use; empty if it is
	failed    bool   // saving failed, and was said
}

// loadPosition reads the position of in for the collector at addr, which has the
// given journal. dir is the folder of all positions; empty is the default one.
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
	key := sha256.Sum256([]byte(addr + "\x00" + abs))
	head, headLen, err := in.head(headBytes)
	if err != nil {
		return nil, fmt.Errorf("read the file's beginning: %w", err)
	}
	now := &position{
		Addr: addr, Journal: journal, File: abs, Inode: inode(in.info), Size: in.size, Head: head, HeadLen: headLen, TailStart: -1,
		path: filepath.Join(dir, hex.EncodeToString(key[:12])+".json"),
	}
	text, err := os.ReadFile(now.path)
	if errors.Is(err, os.ErrNotExist) {
		return now, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the position: %w", err)
	}
	var old position
	if err := json.Unmarshal(text, &old); err != nil || old.Addr != addr || old.File != abs || old.Lines < 0 || old.Offset < 0 {
		now.restarted = "the remembered position cannot be read"
		return now, nil
	}
	if now.restarted, err = in.differs(&old, now); err != nil || now.restarted != "" {
		return now, err
	}
	if now.Journal == "" {
		now.Journal = old.Journal
	}
	now.Lines, now.Offset, now.TailStart = old.Lines, old.Offset, old.TailStart
	return now, nil
}

// differs says why the file is not the one old was saved for; empty if it is.
func (in *input) differs(old, now *position) (string, error) {
	if old.Lines == 0 {
		return "", nil
	}
	if old.Journal != "" && now.Journal != "" && old.Journal != now.Journal {
		return "the collector has another journal than the one it was sent to", nil
	}
	if now.Size < old.Size {
		return fmt.Sprintf("it was cut or replaced (%s, was %s)", byteCount(now.Size), byteCount(old.Size)), nil
	}
	if old.Inode != 0 && now.Inode != 0 && old.Inode != now.Inode {
		return "it was replaced by another file of that name", nil
	}
	head, _, err := in.head(old.HeadLen)
	if err != nil {
		return "", fmt.Errorf("read the file's beginning: %w", err)
	}
	if head != old.Head {
		return "its beginning has changed", nil
	}
	return "", nil
}

func (p *position) reset() { p.Lines, p.Offset, p.TailStart = 0, 0, -1 }

// advance notes that all lines consumed from in were dealt with.
func (p *position) advance(in *input) {
	p.Lines, p.Offset, p.TailStart = in.lines, in.offset, in.tailStart
	if in.unpacker == nil {
		p.Size = max(p.Size, in.offset) // it may have grown since it was opened
	}
}

func (p *position) save() error {
	text, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("save the position: %w", err)
	}
	tmp := fmt.Sprintf("%s.%d.tmp", p.path, os.Getpid())
	if err := os.WriteFile(tmp, text, 0o600); err != nil {
		os.Remove(tmp)
		return fmt.Errorf("save the position: %w", err)
	}
	if err := os.Rename(tmp, p.path); err != nil {
		os.Remove(tmp)
		return fmt.Errorf("save the position: %w", err)
	}
	return nil
}
