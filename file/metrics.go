package file

import (
	"fmt"
	"io"

	"github.com/rollway/rollway/internal/promtext"
)

// WriteMetrics writes s in the text format of Prometheus, for an answer to a scraper.
// labels are names and values in turn, such as "log", "audit"; all samples get them.
// Counters begin at 0 with the File. Stats.Accepted, which may fall, is written plus
// pending. The error names a label that is not allowed, or is out's.
func (s Stats) WriteMetrics(out io.Writer, labels ...string) error {
	err := promtext.Write(out, "rollway_file_", labels, promtext.Table{
		promtext.Counter("lines_written_total", "Lines that are with the operating system.", s.Written),
		promtext.Counter("lines_returned_total", "Lines handed back by a Write that failed.", s.Returned),
		promtext.Gauge("lines_pending", "Lines inside a Write.", s.Pending),
		promtext.Counter("lines_rejected_total", "Lines given after Close.", s.Rejected),
		promtext.Counter("written_bytes_total", "Bytes of the written lines.", s.Bytes),
		promtext.Counter("padded_bytes_total", "Bytes of white space that fill blocks.", s.PaddedBytes),
		promtext.Counter("cut_bytes_total", "Bytes of torn lines that were cut when a file was opened.", s.CutBytes),
		promtext.Counter("torn_bytes_total", "Bytes of torn lines that a failed Write has left.", s.TornBytes),
		promtext.Counter("syncs_total", "Calls of fsync.", s.Syncs),
		promtext.Counter("reopens_total", "Times the path was opened again.", s.Reopens),
		promtext.Counter("followed_total", "Those of reopens_total without a call, because the path named another file.", s.Followed),
		promtext.Counter("truncations_total", "Times the file was found shorter than it was left.", s.Truncations),
		promtext.Counter("rotations_total", "Files that were rotated.", s.Rotations),
		promtext.Counter("abandoned_total", "Files that were left for another one because they failed.", s.Abandoned),
		promtext.Counter("failovers_total", "Moves to the failover folder.", s.Failovers),
		promtext.Counter("compressed_total", "Rotated files that were compressed.", s.Compressed),
		promtext.Counter("compressed_from_bytes_total", "Their bytes before.", s.CompressedFrom),
		promtext.Counter("compressed_to_bytes_total", "Their bytes after.", s.CompressedTo),
		promtext.Counter("removed_total", "Rotated files that were removed.", s.Removed),
		promtext.Counter("removed_bytes_total", "Their bytes on the disk.", s.RemovedBytes),
		promtext.Counter("recovered_total", "Leftovers of a crash that were finished or removed.", s.Recovered),
		promtext.Counter("errors_total", "Failed writes, syncs, rotations, reopens, closes and background work.", s.Errors),
		promtext.Gauges("info", "The file in use and how it is written; always 1.", []string{"path", "mode"},
			promtext.Of(1, s.Path, s.Mode.String())),
	}, promtext.Failure(s.Failing, s.LastErrorTime))
	if err != nil {
		return fmt.Errorf("file: write metrics: %w", err)
	}
	return nil
}
