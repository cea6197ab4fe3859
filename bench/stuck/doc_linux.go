// Package stuck puts loggers in front of a destination that takes nothing, and
// measures what that does to the program: how long a call takes, whether a
// second, healthy output gets its lines, and whether the process can still end.
//
// Each try is a process of its own, with a logger that has two outputs: the
// stuck one first, then a file. The destinations are real: a pipe that is not
// read, a full file system, a collector that was stopped by a signal or that is
// not there.
package stuck

import (
	"slices"
	"time"
)

// The situations: a Write that never returns, a pipe that nobody reads, a full tmpfs, a
// collector stopped by SIGSTOP, and one that is not running.
const (
	Hung    = "hung"
	Pipe    = "pipe"
	Disk    = "disk"
	Stopped = "stopped"
	Absent  = "absent"
)

// Situations lists all, in the order of the tables.
var Situations = []string{Hung, Pipe, Disk, Stopped, Absent}

// Acts are what the program does while the destination is stuck.
const (
	Info    = "Info"
	Error   = "Error"
	Fatal   = "Fatal"
	Panic   = "Panic"
	SIGTERM = "SIGTERM"
	Close   = "Close"
)

// Acts lists all, in the order of the tables.
var Acts = []string{Info, Error, Fatal, Panic, SIGTERM, Close}

// ends reports whether the act ends the process.
func ends(act string) bool { return act == Fatal || act == Panic || act == SIGTERM }

// Bounds of our own loggers. The time limits of processes are longer: a
// machine may be busy.
const (
	maxWait      = 100 * time.Millisecond
	closeTimeout = time.Second
	exitSlack    = 500 * time.Millisecond // beyond closeTimeout
)

// A Writer is one contender.
type Writer struct {
	Name string
	Own  bool // of this project: what must come out is asserted

	Direct   bool // nothing is between the logger and the destination
	Lossless bool // it has a second destination: no line may be lost
	Last     bool // the stuck output is the last of the list, not the first

	maxWait time.Duration // the bound of a call; 0: maxWait

	situations []string // in which it can be tried
	acts       []string // nil: all
	open       opener
}

// Meets reports whether the writer can be tried in that situation with that act.
func (w Writer) Meets(situation, act string) bool {
	return slices.Contains(w.situations, situation) && (w.acts == nil || slices.Contains(w.acts, act))
}

// A Try is what came out of one writer, situation and act.
type Try struct {
	Writer    string `json:"writer"`
	Own       bool   `json:"own"`
	Situation string `json:"situation"`
	Act       string `json:"act"`

	Calls     int           `json:"calls"`      // of log methods that have returned
	Longest   time.Duration `json:"longest_ns"` // of them
	InCall    int           `json:"in_call"`    // producers whose call has not returned
	Delivered int           `json:"delivered"`  // lines of returned calls that the healthy output has
	Disorder  int           `json:"disorder"`   // of its lines that are torn, repeated or out of order

	Took   time.Duration `json:"took_ns"` // by the act, if it ends something
	Hung   bool          `json:"hung"`    // the process had to be killed
	Status int           `json:"status"`  // of the process
	Said   bool          `json:"said"`    // on standard error, what was not delivered

	Ledgers []string `json:"ledgers,omitempty"` // that do not balance
	Dropped uint64   `json:"dropped"`           // as its own ledgers have it
	Failed  string   `json:"failed,omitempty"`  // what the kit itself could not do
}

// crashed reports whether the process ended by a panic that was not asked for.
func (t *Try) crashed() bool { return t.Status == 2 && !ends(t.Act) }
