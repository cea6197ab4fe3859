package direct

import (
	"io"
	"path/filepath"
	"time"

	"github.com/rollway/rollway/internal/direct"
)

// diskReport is what keepDiskBusy says.
type diskReport struct {
	Bytes int64 `json:"bytes"`
}

// keepDiskBusy writes as many bytes a second as the server with logging does,
// a slab at a time, past the page cache, until in ends. It prints an empty line
// when it has begun. What requests suffer from that, beside a server that logs
// nothing, is the disk's and the machine's doing and not a logger's.
func keepDiskBusy(j job, in io.Reader, out io.Writer) (*diskReport, error) {
	disk, err := openOutput(Config{Path: filepath.Join(j.Dir, current), IO: Separate})
	if err != nil {
		return nil, err
	}
	defer disk.Close()
	size := j.Buffer / j.Shards
	m, err := direct.NewMemorySet(1, size)
	if err != nil {
		return nil, err
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
		return nil, err
	}
	if _, err := io.WriteString(out, "\n"); err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		io.Copy(io.Discard, in)
		close(ended)
	}()
	every := time.Duration(float64(j.Period) * float64(size) / float64(j.Bytes))
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return &r, nil
		case <-tick.C:
			if err := write(); err != nil {
				return nil, err
			}
		}
	}
}
