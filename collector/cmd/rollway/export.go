package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/rollway/rollway/collector/query"
	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/recordlog"
)

var exportCommand = &command{
	name:    "export",
	summary: "write what a query finds to packed files",
	args:    "-to DIR ['EXPRESSION']",
	most:    -1,
	help: `
Writes the lines that an expression matches to files in DIR, as NDJSON packed by
zstd: rollway-000001.ndjson.zst and so on, in the order in which they came, and
EXPORT.json with the lines, bytes and checksum of each. What arrives after the
start is left out.

Run it again with the same arguments after it was killed, at whatever moment, or
could not reach the collector: it goes on after the last complete file, and each
line is there once. At the end all files are read again and compared with
EXPORT.json; -check does that alone, for which no collector is needed.

'rollway help query' describes expressions, times, -addr and -data. Pipes have
no place here.

Examples:
  rollway export -to /backup/may -since 2026-05-01 -until 2026-06-01
  rollway export -to errors 'level>=error' -data /var/lib/rollway
  rollway export -check -to /backup/may
  zstd -dc /backup/may/*.zst | jq .msg
`,
	setup: setupExport,
}

func setupExport(flags *flag.FlagSet) action {
	addr := addrFlag(flags)
	data := flags.String("data", "", dataUsage)
	to := flags.String("to", "", "the folder `DIR` for the files, which is made if necessary")
	since := flags.String("since", "", "only lines from this `TIME` on")
	until := flags.String("until", "", "only lines before this `TIME`")
	size := int64(64 << 20)
	sizeFlag(flags, &size, "size", "begin another file after `SIZE` of lines (default 64MiB)")
	check := flags.Bool("check", false, "only check the files of an export that is complete")
	return func(c *call, args []string) error {
		expr := strings.Join(args, " ")
		switch {
		case *to == "":
			return usagef("-to DIR is missing")
		case size < 1:
			return usagef("-size must be at least 1")
		case query.Piped(expr):
			return usagef("an export has lines, and no pipes; use 'rollway query' for %q", expr)
		}
		e := &export{call: c, dir: *to, size: size}
		if *check {
			return e.checkOnly()
		}
		cl, closeData, err := c.asked(*addr, *data)
		if err != nil {
			return err
		}
		defer closeData()
		ctx, stop := interruptible()
		defer stop()
		return e.run(ctx, cl, expr, *since, *until)
	}
}

// exportState is the file EXPORT.json. What it does not list is not part of the export.
type exportState struct {
	Query   string         `json:"query"`
	Since   string         `json:"since,omitempty"` // as given
	Until   string         `json:"until,omitempty"`
	From    string         `json:"from_time,omitempty"` // what they meant at the start
	Before  string         `json:"before_time,omitempty"`
	Journal string         `json:"journal"`           // that was read
	End     string         `json:"end,omitempty"`     // offset after the last record to be searched
	Next    string         `json:"next"`              // offset where the next file begins
	Missing []string       `json:"missing,omitempty"` // records that could not be read
	Done    bool           `json:"done"`
	Files   []exportedFile `json:"files"`
}

type exportedFile struct {
	Name   string `json:"name"`
	Lines  int    `json:"lines"`
	Bytes  int64  `json:"bytes"`  // of the lines
	Packed int64  `json:"packed"` // of the file
	SHA256 string `json:"sha256"` // of the file
}

const (
	exportStateName = "EXPORT.json"
	maxExportState  = 64 << 20 // bytes
)

// An export writes one folder. A file is written under another name, synced, renamed, and
// then listed in EXPORT.json, which is replaced. A process that was killed in between leaves
// a file that is not listed and is written again. It is not safe for concurrent use.
type export struct {
	call *call
	dir  string
	size int64
	disk disk.Real

	state  exportState
	search *search
	file   *os.File // being written; nil: none
	packer *zstd.Encoder
	sum    hash.Hash // of file
	now    exportedFile
	line   statusLine
}

func (e *export) path(name string) string { return filepath.Join(e.dir, name) }

// load reads EXPORT.json; fs.ErrNotExist: there is none.
func (e *export) load() error {
	text, err := recordlog.ReadFile(e.disk, e.path(exportStateName), maxExportState)
	if err == nil {
		err = json.Unmarshal(text, &e.state)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", e.path(exportStateName), err)
	}
	for i, f := range e.state.Files {
		if f.Name != exportName(i) {
			return fmt.Errorf("read %s: file %d is %q, and not %s", e.path(exportStateName), i, f.Name, exportName(i))
		}
	}
	return nil
}

func (e *export) save() error {
	text, err := json.MarshalIndent(&e.state, "", "  ")
	if err == nil {
		err = recordlog.WriteFile(e.disk, e.path(exportStateName), append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", exportStateName, err)
	}
	return nil
}

func exportName(i int) string { return fmt.Sprintf("rollway-%06d.ndjson.zst", i+1) }

// partName is of the file that is being written.
const partName = "unfinished.part"

func (e *export) run(ctx context.Context, cl *client, expr, since, until string) error {
	if err := e.disk.MkdirAll(e.dir, 0o750); err != nil {
		return err
	}
	lock, err := recordlog.Lock(e.disk, e.dir)
	if errors.Is(err, disk.ErrLocked) {
		return fmt.Errorf("another export writes to %s", e.dir)
	} else if err != nil {
		return err
	}
	defer lock.Close()
	if err := e.begin(expr, since, until); err != nil {
		return err
	}
	if !e.state.Done {
		if err := e.write(ctx, cl); err != nil {
			return err
		}
	}
	if err := e.check(); err != nil {
		return err
	}
	return e.sayAll()
}

// begin reads or makes the state of the export.
func (e *export) begin(expr, since, until string) error {
	switch err := e.load(); {
	case errors.Is(err, fs.ErrNotExist):
		e.state = exportState{Query: expr, Since: since, Until: until}
		now := time.Now()
		for _, bound := range []struct {
			name, text string
			at         *string
		}{{"since", since, &e.state.From}, {"until", until, &e.state.Before}} {
			if bound.text == "" {
				continue
			}
			t, err := query.ParseTime(bound.text, now)
			if err != nil {
				return usagef("-%s: %v", bound.name, err)
			}
			*bound.at = t.Format(time.RFC3339Nano)
		}
		return nil
	case err != nil:
		return err
	}
	if s := &e.state; s.Query != expr || s.Since != since || s.Until != until {
		return usagef("%s has an export of %q, -since %q, -until %q; continue it with these, or name another folder", e.dir, s.Query, s.Since, s.Until)
	}
	return nil
}

// write adds the files that are missing.
func (e *export) write(ctx context.Context, cl *client) (err error) {
	defer func() {
		e.line.clear()
		if e.file != nil {
			err = errors.Join(err, e.packer.Close(), e.file.Close())
			os.Remove(e.path(partName)) // the next run would
		}
	}()
	s := &e.state
	e.line = statusLine{w: e.call.stderr.file, on: e.call.stderr.terminal && !e.call.json, width: e.call.stderr.width}
	e.search = &search{
		call: e.call, client: cl, values: parameters("q", s.Query, "since", s.From, "until", s.Before, "from", s.Next),
		take: e.take, flush: func() error { return nil },
		journal: s.Journal, to: s.End,
		begin: func([]string) error {
			s.Journal, s.End = e.search.journal, e.search.to
			return e.save()
		},
	}
	err = e.search.run(ctx)
	// What was written is kept: the next run goes on after it.
	s.Missing = append(s.Missing, e.search.missing...)
	interrupted := err == nil && ctx.Err() != nil
	if e.file != nil {
		if err := errors.Join(err, e.finish()); err != nil {
			return err
		}
	}
	if err == nil && !interrupted {
		s.Done = true
	}
	if e.search.asked {
		err = errors.Join(err, e.save())
	}
	if interrupted {
		return errors.Join(err, fmt.Errorf("interrupted after %s; run it again to go on", lines(e.total().Lines)))
	}
	return err
}

// take writes a line.
func (e *export) take(line []byte) error {
	if e.file != nil && e.now.Bytes >= e.size {
		if err := e.finish(); err != nil {
			return err
		}
		if err := e.save(); err != nil {
			return err
		}
	}
	if e.file == nil {
		if err := e.create(); err != nil {
			return err
		}
	}
	e.now.Lines++
	e.now.Bytes += int64(len(line))
	e.line.show(func() string {
		return fmt.Sprintf("%s, %s", lines(e.total().Lines+e.now.Lines), byteCount(e.total().Bytes+e.now.Bytes))
	})
	_, err := e.packer.Write(line)
	return err
}

func (e *export) create() (err error) {
	e.now = exportedFile{Name: exportName(len(e.state.Files))}
	if e.file, err = os.OpenFile(e.path(partName), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o640); err != nil {
		return err
	}
	e.sum = sha256.New()
	e.packer, err = zstd.NewWriter(io.MultiWriter(e.file, e.sum))
	return err
}

// finish completes the file that is being written, and lists it. The next one begins after
// the line that was taken last.
func (e *export) finish() error {
	f := e.file
	e.file = nil
	err := e.packer.Close()
	if err == nil {
		err = f.Sync()
	}
	info, statErr := f.Stat()
	if err = errors.Join(err, statErr, f.Close()); err == nil {
		err = e.disk.Rename(e.path(partName), e.path(e.now.Name))
	}
	if err == nil {
		err = e.disk.SyncDir(e.dir)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", e.now.Name, err)
	}
	e.now.Packed, e.now.SHA256 = info.Size(), hex.EncodeToString(e.sum.Sum(nil))
	e.state.Files, e.state.Next = append(e.state.Files, e.now), e.search.next
	return nil
}

// total is the sum of all files.
func (e *export) total() (all exportedFile) {
	for _, f := range e.state.Files {
		all.Lines += f.Lines
		all.Bytes += f.Bytes
		all.Packed += f.Packed
	}
	return all
}

func (e *export) checkOnly() error {
	if err := e.load(); err != nil {
		return err
	}
	if !e.state.Done {
		return fmt.Errorf("the export in %s is not complete; run it again without -check", e.dir)
	}
	if err := e.check(); err != nil {
		return err
	}
	return e.sayAll()
}

// check reads all files and compares them with the state.
func (e *export) check() error {
	var bad []error
	for _, want := range e.state.Files {
		got, err := readExported(e.path(want.Name))
		if got.Name = want.Name; err == nil && got != want {
			err = fmt.Errorf("%s in %s with checksum %.12s, and not %s in %s with %.12s", lines(got.Lines), byteCount(got.Packed), got.SHA256, lines(want.Lines), byteCount(want.Packed), want.SHA256)
		}
		if err != nil {
			bad = append(bad, fmt.Errorf("%s: %w", want.Name, err))
		}
	}
	found, err := filepath.Glob(e.path("rollway-*.ndjson.zst"))
	if err == nil && len(bad) == 0 && len(found) > len(e.state.Files) {
		err = fmt.Errorf("%s are in %s, and %s lists %d", plural(len(found), "file"), e.dir, exportStateName, len(e.state.Files))
	}
	return errors.Join(append(bad, err)...)
}

// readExported reads a file of an export.
func readExported(path string) (got exportedFile, err error) {
	f, _, err := openRegular(path)
	if err != nil {
		return got, err
	}
	defer f.Close() // only read from
	sum := sha256.New()
	r, err := zstd.NewReader(io.TeeReader(f, sum), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return got, err
	}
	defer r.Close()
	buf := make([]byte, 256<<10)
	for err == nil {
		var n int
		n, err = r.Read(buf)
		got.Lines += bytes.Count(buf[:n], []byte("\n"))
		got.Bytes += int64(n)
	}
	if err != io.EOF {
		return got, err
	}
	if _, err := io.Copy(sum, f); err != nil { // what is after the end
		return got, err
	}
	info, err := f.Stat()
	if err != nil {
		return got, err
	}
	got.Packed, got.SHA256 = info.Size(), hex.EncodeToString(sum.Sum(nil))
	return got, nil
}

// sayAll prints the summary.
func (e *export) sayAll() error {
	all := e.total()
	if err := e.call.show(struct {
		Dir    string `json:"dir"`
		Lines  int    `json:"lines"`
		Bytes  int64  `json:"bytes"`
		Packed int64  `json:"packed"`
		exportState
	}{e.dir, all.Lines, all.Bytes, all.Packed, e.state},
		fmt.Sprintf("%s, %s, packed %s, in %s in %s; checked\n", lines(all.Lines), byteCount(all.Bytes), byteCount(all.Packed), plural(len(e.state.Files), "file"), e.dir)); err != nil {
		return err
	}
	if len(e.state.Missing) > 0 {
		return fmt.Errorf("lines are missing: %s", appendPlain(nil, strings.Join(e.state.Missing, "; ")))
	}
	return nil
}
