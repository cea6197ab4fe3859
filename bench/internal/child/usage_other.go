//go:build !linux

package child

import (
	"errors"
	"time"
)

// Missing says why this machine cannot measure other processes.
const Missing = "Linux, for the CPU time and the memory of another process"

var errMissing = errors.New("this needs " + Missing)

func family(pid int) ([]int, error) { return []int{pid}, nil }

// CPU is not known here.
func (p *Process) CPU() (time.Duration, error) { return 0, errMissing }

// Reads are not known here.
func (p *Process) Reads() (float64, error) { return 0, errMissing }

// Resident is not known here.
func Resident(int) (int64, error) { return 0, errMissing }

// Peak is not known here.
func Peak(int) (int64, error) { return 0, errMissing }

// ResetPeak is not known here.
func ResetPeak(int) error { return errMissing }

// Space is not known here.
func (p *Process) Space() (float64, int, error) { return 0, 0, errMissing }
