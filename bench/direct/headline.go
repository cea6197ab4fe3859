package direct

import (
	"time"

	"github.com/rollway/rollway/bench/internal/measure"
)

// The headline is a gRPC server that logs a record of 300 KiB in each of 1000
// requests a second, from 100 handlers. The server is a process of its own, so
// that what it uses is its own; the one that measures sends the requests, each
// when it is due, whatever became of those before (open loop). A third process
// reads each rotated file back and then removes it.

// Headlines are the raw results.
type Headlines struct {
	measure.Results
	// Runs are first interleaved pairs, one with logging and one without, after each
	// pair one whose server copies each record and does no more, and last the long one,
	// with logging.
	Runs []Run `json:"runs"`
}

// A Run is the server under load once.
type Run struct {
	Name     string            `json:"name"`
	Logging  bool              `json:"logging"`
	Copies   bool              `json:"copies,omitempty"` // each record was copied instead of logged
	Seconds  float64           `json:"seconds"`
	Requests int               `json:"requests"`
	Failed   int               `json:"failed"`
	GRPC     measure.Quantiles `json:"grpc"`       // from when a request was due to its answer
	Others   float64           `json:"others_pct"` // of one core, used by other programs
	Verifier float64           `json:"verifier"`   // cores, where files were read back meanwhile
	Server   ServerReport      `json:"server"`
	Verified Verified          `json:"verified"`
	DiskPeak int64             `json:"disk_peak"` // bytes of all log files at a time
}

// Verified is what became of the records, to the record.
type Verified struct {
	Accepted int   `json:"accepted"` // by LogBytes
	Found    int   `json:"found"`    // of these, in the files, with the right checksum
	Lost     int   `json:"lost"`
	Unasked  int   `json:"unasked"` // refused, and in the files
	Torn     int   `json:"torn"`
	Repeated int   `json:"repeated"`
	NULs     int64 `json:"nuls"`
	Padding  int64 `json:"padding"`
	Bytes    int64 `json:"bytes"`
	Files    int   `json:"files"`
}

// A ServerReport is what the server says of a run.
type ServerReport struct {
	Accepted int               `json:"accepted"`
	Dropped  int               `json:"dropped"`
	Call     measure.Quantiles `json:"call"` // LogBytes alone
	Write    measure.Quantiles `json:"write"`
	Mean     time.Duration     `json:"write_mean"`
	Flushes  uint64            `json:"flushes"`
	CPU      CPU               `json:"cpu"`
	Memory   MemoryParts       `json:"memory"`
	GC       GC                `json:"gc"`
	Series   []Point           `json:"series"`
}

// CPU is in cores. The parts are shares of a profile of the whole run.
type CPU struct {
	Total    float64 `json:"total"`
	Payload  float64 `json:"payload"`  // the handlers make the record
	Handlers float64 `json:"handlers"` // the rest of gRPC, the network and the runtime
	Logger   float64 `json:"logger"`   // LogBytes
	Flusher  float64 `json:"flusher"`  // the goroutine that writes
	GC       float64 `json:"gc"`       // background workers
	Samples  int     `json:"samples"`
}

// MemoryParts is in bytes.
type MemoryParts struct {
	Resident int `json:"resident"` // the most seen of the whole process
	Buffers  int `json:"buffers"`  // of the logger
	Payload  int `json:"payload"`  // of the handlers
	Heap     int `json:"heap"`     // Go's, in use, the most seen
	Stacks   int `json:"stacks"`
}

// GC is of the measured time.
type GC struct {
	Cycles   int           `json:"cycles"`
	Pause    time.Duration `json:"pause"`
	MaxPause time.Duration `json:"max_pause"`
	AllocMBs float64       `json:"alloc_mb_s"`
	Percent  int           `json:"gogc,omitempty"`
}

// A Point is one moment of a run.
type Point struct {
	Second   float64 `json:"second"`
	MBs      float64 `json:"mb_s"` // written to the file since the point before
	Resident int     `json:"resident"`
	Dropped  int     `json:"dropped"` // since the begin
}
