package direct

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rollway/rollway/bench/internal/lines"
)

// current is the file that is written to; rotated files have names that begin
// with it.
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

// verify reads each file of a log that has been rotated, and removes it, until in
// ends. What is there then is all there is.
func verify(j job, in io.Reader, out io.Writer) error {
	ended := inputEnds(in)
	v := verifier{a: newAudit(1, parseRecord(j.Bytes))}
	for last := false; ; {
		names, size, err := segmentsIn(j.Dir, last)
		if err != nil {
			return err
		}
		v.f.Peak = max(v.f.Peak, size)
		if err := v.take(names, last || size > enough); err != nil {
			return err
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
	a, f := v.a, v.f
	f.Found, f.Torn, f.Repeated = a.Found, a.Torn, a.Repeated
	f.NULs, f.Padding, f.Bytes, f.Numbers = a.NULs, a.Padding, a.Bytes, a.Bits(0)
	return json.NewEncoder(out).Encode(f)
}

// A verifier reads files that are done.
type verifier struct {
	f found
	a *lines.Audit
}

// take reads files and removes them.
func (v *verifier) take(names []string, hurry bool) error {
	for _, name := range names {
		if err := readFile(v.a, name); err != nil {
			return err
		}
		if err := removeSlowly(name, hurry); err != nil {
			return err
		}
		v.f.Files++
	}
	return nil
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

// segmentsIn lists the files that are no longer written, and the size of all.
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

// against compares what was found with the answers that the requests got.
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
