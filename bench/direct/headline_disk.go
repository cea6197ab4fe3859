package direct

import (
	"encoding/json"
	"io"
	"path/filepath"
	"time"

	"github.com/rollway/rollway/internal/direct"
)

// diskReport is what keepDiskBusy says at its end.
type diskReport struct{ Bytes int64 }

// keepDiskBusy writes as many bytes a second as the server with logging does,
// a slab at a time, past the page cache, until in ends. It says "" when it has
// begun. What requests suffer from that, beside a server that logs nothing, is the
// disk's and the machine's doing and not a logger's.
func keepDiskBusy(j job, in io.Reader, out io.Writer) error {
	disk, err := openOutput(Config{Path: filepath.Join(j.Dir, current), IO: Separate})
	if err != nil {
		return err
	}
	defer disk.Close()
	size := j.Buffer / j.Shards
	m, err := direct.NewMemorySet(1, size)
	if err != nil {
		return err
	}
	defer m.Free()
	fillRecord(m.Bytes(0), 0, 0)
	var r diskReport
	write := func() error {
		err := disk.WriteSet([][]byte{m.Bytes(0)})
		r.Bytes += int64(size)
		return err
	}
	if err := write(); err != nil {
		return err
	}
	answer := json.NewEncoder(out)
	if err := answer.Encode(""); err != nil {
		return err
	}
	ended := inputEnds(in)
	every := time.Duration(float64(j.Period) * float64(size) / float64(j.Bytes))
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return answer.Encode(r)
		case <-tick.C:
			if err := write(); err != nil {
				return err
			}
		}
	}
}
