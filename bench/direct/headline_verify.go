package direct

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rollway/rollway/internal/disk"
)

// current is the file that is written to; those that are done have its name and
// more.
const current = "log"

// enough is how many bytes of log files there may be before they are removed in
// a hurry.
const enough = 2 << 30

// found is the verifier's answer.
type found struct {
	Verified
	Numbers []uint64 `json:"numbers"` // a bit for each record found
	Peak    int64    `json:"peak"`    // bytes of all files at a time
}

// verify reads each file of a log that has been rotated, and removes it if it is
// not to be written over, until in ends. What is there then is all there is.
func verify(j job, in io.Reader) (*found, error) {
	ended := make(chan struct{})
	go func() {
		io.Copy(io.Discard, in)
		close(ended)
	}()
	v := verifier{job: j, a: NewAudit(1, parseRecord(j.Bytes))}
	for last := false; ; {
		names, size, err := segmentsIn(j.Dir, last)
		if err != nil {
			return nil, err
		}
		v.f.Peak = max(v.f.Peak, size)
		if j.Keep > 0 {
			err = v.hold(names)
		} else {
			err = v.take(names, last || size > enough)
		}
		if err != nil {
			return nil, err
		}
		if last {
			break
		}
		select {
		case <-ended:
			last = true
		case <-time.After(20 * time.Millisecond):
		}
	}
	if err := v.finish(); err != nil {
		return nil, err
	}
	a, f := v.a, v.f
	f.Found, f.Torn, f.Repeated = a.Found, a.Torn, a.Repeated
	f.NULs, f.Padding, f.Bytes, f.Numbers = a.NULs, a.Padding, a.Bytes, a.seen[0].bits
	return &f, nil
}

// A verifier reads files that are done. Where they are written over afterwards
// it holds each of them until it has been read.
type verifier struct {
	job job
	f   found
	a   *Audit // used by the goroutine of queue, where there is one

	held  []string // names of files that were held
	queue chan *os.File
	read  chan error // what the goroutine of queue ends with
}

// take reads files and removes them.
func (v *verifier) take(names []string, hurry bool) error {
	read := v.a.readFile
	if v.job.Framed {
		read = v.a.readFramed
	}
	for _, name := range names {
		if v.job.Framed {
			f, err := lockDone(name)
			if err != nil {
				return err
			}
			if f == nil {
				continue
			}
			defer f.Close()
		}
		if err := read(name); err != nil {
			return err
		}
		if err := removeSlowly(name, hurry); err != nil {
			return err
		}
		v.f.Files++
	}
	return nil
}

// lockDone opens and locks a framed file. It returns nil for one that its writer
// has not let go of yet, or that has another name by now.
func lockDone(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := disk.LockFile(f); err != nil {
		f.Close()
		if errors.Is(err, disk.ErrLocked) {
			err = nil
		}
		return nil, err
	}
	return f, nil
}

// hold locks files that were not there before, so that they are not written
// over, and has them read. One that its writer has still locked comes next time.
func (v *verifier) hold(names []string) error {
	if v.queue == nil {
		v.queue, v.read = make(chan *os.File, 1000), make(chan error, 1)
		go v.readHeld()
	}
	for _, name := range names {
		if slices.Contains(v.job.Old, name) || slices.Contains(v.held, name) {
			continue
		}
		f, err := lockDone(name)
		if err != nil {
			return err
		}
		if f == nil {
			continue
		}
		v.held = append(v.held, name)
		v.f.Files++
		v.queue <- f
	}
	return nil
}

// readHeld reads what comes in queue and then lets go of it.
func (v *verifier) readHeld() {
	var first error
	for f := range v.queue {
		err := v.a.readFramed(f.Name())
		if err = errors.Join(err, f.Close()); first == nil {
			first = err
		}
	}
	v.read <- first
}

// finish waits until all is read.
func (v *verifier) finish() error {
	if v.queue == nil {
		return nil
	}
	close(v.queue)
	return <-v.read
}

// filesBefore lists the files in dir that are done before a run begins.
func filesBefore(dir string) ([]string, error) {
	names, _, err := segmentsIn(dir, false)
	return names, err
}

// removeSlowly removes a file, in small pieces unless hurry is set. On a file
// system that is mounted with discard, freeing 512 MiB at once makes the writes
// of others wait for some 70 ms.
func removeSlowly(name string, hurry bool) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	const piece = 4 << 20
	for size := info.Size() - piece; size > 0 && !hurry; size -= piece {
		if err := os.Truncate(name, size); err != nil {
			return err
		}
		time.Sleep(9 * time.Millisecond)
	}
	return os.Remove(name)
}

// segmentsIn lists the files that nobody writes any more, and the size of all.
func segmentsIn(dir string, last bool) (names []string, size int64, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, 0, err
	}
	for _, e := range entries {
		info, err := e.Info()
		if os.IsNotExist(err) {
			continue // renamed since
		}
		if err != nil {
			return nil, 0, err
		}
		size += info.Size()
		if strings.HasPrefix(e.Name(), current) && (last || e.Name() != current) {
			names = append(names, filepath.Join(dir, e.Name()))
		}
	}
	slices.Sort(names)
	return names, size, nil
}

// against holds what was found against the answers that the requests got.
func (f *found) against(answers []byte) Verified {
	v := f.Verified
	for i, answer := range answers {
		there := i/64 < len(f.Numbers) && f.Numbers[i/64]&(1<<(i%64)) != 0
		switch {
		case answer == accepted && there:
			v.Accepted++
		case answer == accepted:
			v.Accepted++
			v.Lost++
		case there && answer == dropped:
			v.Unasked++
		}
	}
	return v
}
