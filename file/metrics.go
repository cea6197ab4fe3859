package file

import (
	"fmt"
	"io"

	"github.com/rollway/rollway/internal/promtext"
)

// WriteMetrics writes s in the text format of Prometheus, for an answer to a
// scraper. labels are names and values by turns, such as "log", "audit"; all
// samples get them. Counters begin at 0 with the File. Stats.Accepted, which may
// fall, is written plus pending. The error names a label that is not allowed, or
// is out's.
func (s Stats) WriteMetrics(out io.Writer, labels ...string) error {
	p, err := promtext.New("rollway_file_", labels, "path", "mode")
	if err != nil {
		return fmt.Errorf("file: write metrics: %w", err)
	}
	p.Counter("lines_written_total", "Lines that are with the operating system.", s.Written)
	p.Counter("lines_returned_total", "Lines handed back by a Write that failed.", s.Returned)
	p.Gauge("lines_pending", "Lines inside a Write.", float64(s.Pending))
	p.Counter("lines_rejected_total", "Lines given after Close.", s.Rejected)
	p.Counter("written_bytes_total", "Bytes of the written lines.", s.Bytes)
	p.Counter("padded_bytes_total", "Bytes of white space that fill blocks.", s.PaddedBytes)
	p.Counter("cut_bytes_total", "Bytes of torn lines that were cut when a file was opened.", s.CutBytes)
	p.Counter("torn_bytes_total", "Bytes of torn lines that a failed Write has left.", s.TornBytes)
	p.Counter("syncs_total", "Calls of fsync.", s.Syncs)
	p.Counter("reopens_total", "Times the path was opened again.", s.Reopens)
	p.Counter("followed_total", "Those of reopens_total without a call, because the path named another file.", s.Followed)
	p.Counter("truncations_total", "Times the file was found shorter than it was left.", s.Truncations)
	p.Counter("rotations_total", "Files that were rotated.", s.Rotations)
	p.Counter("abandoned_total", "Files that were left for another one because they failed.", s.Abandoned)
	p.Counter("failovers_total", "Moves to the failover folder.", s.Failovers)
	p.Counter("compressed_total", "Rotated files that were compressed.", s.Compressed)
	p.Counter("compressed_from_bytes_total", "Their bytes before.", s.CompressedFrom)
	p.Counter("compressed_to_bytes_total", "Their bytes after.", s.CompressedTo)
	p.Counter("removed_total", "Rotated files that were removed.", s.Removed)
	p.Counter("removed_bytes_total", "Their bytes on the disk.", s.RemovedBytes)
	p.Counter("recovered_total", "Leftovers of a crash that were finished or removed.", s.Recovered)
	p.Counter("errors_total", "Failed writes, syncs, rotations, reopens, closes and background work.", s.Errors)
	p.Family("info", "gauge", "The file in use and how it is written; always 1.")
	p.Sample("info", 1, "path", s.Path, "mode", s.Mode.String())
	p.Failure(s.Failing, s.LastErrorTime)
	_, err = p.WriteTo(out)
	return err
}
