package spool

import (
	"fmt"
	"time"

	"github.com/rollway/rollway/internal/disk"
)

// Options of a Spool. The zero value is the recommended setting.
type Options struct {
	// MaxBytes bounds the segment files together, in bytes. Settled lines free their
	// room a segment at a time. Default 1 GiB.
	MaxBytes int64

	// MaxAge is the age at which lines are dropped instead of handed out by
	// Next, by the wall clock. Default 0: no bound.
	MaxAge time.Duration

	// SegmentBytes is the size at which a new segment begins, and the step in
	// which DropOldest drops. Default a sixteenth of MaxBytes, at most 16 MiB.
	SegmentBytes int64

	// Full is what happens to an Append beyond MaxBytes.
	Full Policy

	// Disk is what the folder is on. Default disk.Real.
	Disk disk.FS
}

// Policy says what happens when the spool is full.
type Policy int

const (
	Refuse     Policy = iota // Append fails with ErrFull
	DropOldest               // the oldest segment's lines are dropped and counted
)

func (o Options) withDefaults() (Options, error) {
	switch {
	case o.MaxBytes < 0:
		return o, fmt.Errorf("MaxBytes is %d: give a positive size, or 0 for the default 1 GiB", o.MaxBytes)
	case o.MaxAge < 0:
		return o, fmt.Errorf("MaxAge is %v: give a positive time, or 0 for no bound", o.MaxAge)
	case o.SegmentBytes < 0:
		return o, fmt.Errorf("SegmentBytes is %d: give a positive size, or 0 for the default", o.SegmentBytes)
	case o.Full != Refuse && o.Full != DropOldest:
		return o, fmt.Errorf("Full is %d: give Refuse or DropOldest", o.Full)
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 1 << 30
	}
	if o.SegmentBytes == 0 {
		o.SegmentBytes = min(o.MaxBytes/16, 16<<20)
	}
	if o.Disk == nil {
		o.Disk = disk.Real{}
	}
	return o, nil
}
