// Package reliability puts writers under the faults that a log meets in
// practice and checks the ledger after each: every line that a Write has
// acknowledged is either in the file, once, whole and in order, or counted as
// dropped by the writer itself, or lost in silence.
//
// Each try runs the writer in a process of its own, which logs numbered lines
// to a real file and notes on a board in memory shared with this process what
// became of each call. So the account outlives whatever happens to the writer:
// a panic, a deadlock, SIGKILL. Where the process is killed it is started again
// the same way, as a service would be, before the file is read.
//
// The same faults are pointed at rivals, each with the settings it documents.
package reliability

import "time"

// A Fault is one thing that goes wrong.
type Fault struct {
	Name  string
	Needs string // what it needs besides linux, one of the constants below

	// Kills is set if the process does not survive: its own memory is lost.
	Kills bool

	destination bool   // struck inside of the destination's Write or Close
	between     bool   // struck between the writer and its file
	inject      string // for strace
}

// What a fault may need of the machine.
const (
	needsStrace      = "strace"
	needsMount       = "mount" // a tmpfs in a namespace of its own
	needsLoop        = "loop"  // an ext4 in a file, the same way
	needsUserfaultfd = "userfaultfd"
	needsCgroup      = "memory cgroup"
)

// The faults that code refers to by name.
const (
	stallOnce     = "stall"
	errorOnce     = "error once"
	errorsAWhile  = "errors for a while"
	errorsForEver = "errors for ever"
	shortSilent   = "short write, no error"
	shortError    = "short write, ENOSPC"
	takesNothing  = "takes nothing, no error"
	panics        = "panic"
	goexits       = "goexit"
	closeBlocks   = "close blocks"

	tmpfsFull = "disk full"
	ext4Full  = "ext4 full"
	fileLimit = "file size limit"

	straceEIO    = "EIO by strace"
	straceENOSPC = "ENOSPC by strace"
	straceShort  = "short write by strace"
	straceKill   = "SIGKILL at a write call"

	killRandom      = "kill -9 at random"
	killInCopy      = "kill -9 in a copy"
	killInWrite     = "kill -9 in a write"
	killAfterWrite  = "kill -9 after a write"
	killOutOfMemory = "OOM kill"
)

// Faults lists everything that goes wrong, in the order of the tables.
func Faults() []Fault {
	return []Fault{
		{Name: stallOnce, destination: true},
		{Name: errorOnce, destination: true},
		{Name: errorsAWhile, destination: true},
		{Name: errorsForEver, destination: true},
		{Name: shortSilent, destination: true},
		{Name: shortError, destination: true},
		{Name: takesNothing, destination: true},
		{Name: panics, destination: true},
		{Name: goexits, destination: true},
		{Name: closeBlocks, destination: true},

		{Name: tmpfsFull, Needs: needsMount},
		{Name: ext4Full, Needs: needsLoop},
		{Name: fileLimit},

		{Name: straceEIO, Needs: needsStrace, inject: "error=EIO:when=1+3"},
		{Name: straceENOSPC, Needs: needsStrace, inject: "error=ENOSPC:when=1+3"},
		{Name: "EINTR by strace", Needs: needsStrace, inject: "error=EINTR:when=1+2"},
		{Name: straceShort, Needs: needsStrace, inject: "retval=0:when=1+3"},
		{Name: "delay by strace", Needs: needsStrace, inject: "delay_enter=300000:when=1"},
		{Name: straceKill, Needs: needsStrace, Kills: true, inject: "signal=SIGKILL:when=2"},

		{Name: killRandom, Kills: true},
		{Name: killInCopy, Needs: needsUserfaultfd, Kills: true},
		{Name: killInWrite, Kills: true, between: true},
		{Name: killAfterWrite, Kills: true, between: true},
		{Name: killOutOfMemory, Needs: needsCgroup, Kills: true},
	}
}

// lineBytes is the length of each line, its newline included.
const lineBytes = 256

// A Writer is one contender.
type Writer struct {
	Name string
	Own  bool // of this project: what must come out is asserted

	// Whole is set for a writer that needs a real file below it: the faults
	// inside of a destination do not apply.
	Whole bool

	// Opens is set for a Whole writer that opens its own file: nothing can be put
	// between the two either.
	Opens bool
}

// meets reports whether the fault can be done to the writer.
func (w Writer) meets(f Fault) bool {
	return !(f.destination && w.Whole) && !(f.between && w.Opens)
}

// Names of our own writers.
const (
	Heap        = "slab"
	Persisted   = "slab persisted"
	Sharded     = "slab, 4 shards"
	ShardDirect = "slab, 4 shards, direct I/O"
	Direct      = "file, direct"
)

// own lists them.
var own = []string{Heap, Persisted, Sharded, ShardDirect, Direct}

// A Ledger is what a writer of ours says became of its lines, if its process
// was not killed. All numbers are lines.
type Ledger struct {
	Accepted  uint64 `json:"accepted"`
	Recovered uint64 `json:"recovered,omitempty"` // of Accepted, those left by an earlier process
	Written   uint64 `json:"written"`
	Dropped   uint64 `json:"dropped,omitempty"`
	Shutdown  uint64 `json:"shutdown,omitempty"` // those of Dropped for the reason that Close's deadline had come
	Pending   uint64 `json:"pending,omitempty"`
}

// A Try is one fault that one writer went through. Numbers are lines unless
// noted.
type Try struct {
	Fault  string `json:"fault"`
	Writer string `json:"writer"`
	Seed   uint64 `json:"seed"`

	Acked   int `json:"acked,omitempty"`   // Write said that it took them
	Refused int `json:"refused,omitempty"` // Write said that it did not
	Open    int `json:"open,omitempty"`    // in a Write that had not returned when the process ended
	Found   int `json:"found,omitempty"`   // different ones in the file
	Unasked int `json:"unasked,omitempty"` // refused, and in the file all the same

	Silent  int `json:"lost_silently,omitempty"`   // acknowledged, not in the file, not counted and no error told
	Told    int `json:"lost_with_error,omitempty"` // not counted, but an error came from Write, Sync or Close
	Counted int `json:"lost_counted,omitempty"`    // in the writer's own count of drops

	Torn       int `json:"torn,omitempty"` // lines in the file that were not written like that
	Duplicated int `json:"duplicated,omitempty"`
	Reordered  int `json:"reordered,omitempty"` // lines after a later one of the same producer

	Thrown int `json:"thrown,omitempty"` // panics and Goexits that came out of Write into the caller

	Hung    bool   `json:"hung,omitempty"`    // a call did not return
	Dead    bool   `json:"dead,omitempty"`    // took no line to the file once the fault was over
	Crashed bool   `json:"crashed,omitempty"` // the fault took the process down
	Error   string `json:"error,omitempty"`   // what the writer told last

	// Ledgers are those of the processes that ended by themselves, in their
	// order: none for a rival, or a writer that keeps none.
	Ledgers []Ledger `json:"ledgers,omitempty"`
	Late    int      `json:"late,omitempty"` // acknowledged ones of a process that was started after the fault
}

// Settings say how much is tried.
type Settings struct {
	Dir     string        // for log files; default the folder for temporary files
	Tries   int           // of each fault that does not kill
	Kills   int           // SIGKILLs at random, in a copy and in a write, each
	Others  int           // of each other fault that kills
	Limit   time.Duration // after which a call has hung, and a writer that writes nothing is dead; ours have a minute at least
	Jobs    int           // processes at the same time; default 1
	Seed    uint64
	Writers []Writer
	Faults  []Fault
}
