package rollway

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollway/rollway/internal/jsonline"
)

// core is what all Loggers derived from one New share.
type core struct {
	formats []*format
	single  *output   // the only one, of the only format; nil if there are others
	outputs []*output // in the order of Options.Outputs
	clock   *clock

	gate    *slog.LevelVar // of Loggers without Levels
	levels  *Levels        // nil: one gate for all
	floor   slog.Level     // below it no output takes anything
	dynamic bool           // what the outputs take is not to be seen from the gate alone
	caller  slog.Leveler
	stack   slog.Leveler
	capture slog.Level // below it neither caller nor stack is captured
	bare    []state    // of a Logger without attributes, one for each format
	sampler *sampler
	dedup   bool
	redact  *redactor
	custom  bool                                            // a format of the user's wants the context
	trace   func(context.Context) ([16]byte, [8]byte, bool) // nil: none
	extract []func(context.Context, *Attrs)
	extras  bool // any of the four: there is something to complete

	maxLine     int
	stallBound  time.Duration
	exitTimeout time.Duration
	exit        func(int)
	onError     func(error) // nil: stderr

	leftOut    atomic.Uint64 // records left out by sampling and reported
	closed     atomic.Bool
	afterClose atomic.Uint64 // records logged after Shutdown
	shutdown   struct {
		once sync.Once
		err  error
	}
}

// format is one way of encoding and the outputs that want it.
type format struct {
	formatSettings
	fields  []layoutField // of JSON with a layout of the user's
	slots   uint          // a bit for each fixed key that the format has
	keepRaw bool          // attributes are encoded at each call
	maxLine int           // bytes
	buffers []*output     // have WriteLevel: decide themselves whether to wait
	direct  []*output     // may block in Write
}

func newCore(o Options) (*core, error) {
	c := &core{
		clock:       newClock(),
		caller:      o.Caller,
		stack:       o.Stack,
		trace:       o.Trace,
		extract:     o.Extractors,
		dedup:       o.Dedup,
		maxLine:     o.MaxLine,
		stallBound:  o.StallBound,
		exitTimeout: o.ExitTimeout,
		exit:        o.Exit,
		onError:     o.OnError,
	}
	for i, opt := range o.Outputs {
		if err := c.addOutput(opt, o.Levels != nil); err != nil {
			return nil, fmt.Errorf("rollway.New: Options.Outputs[%d].Encoder: %w", i, err)
		}
	}
	if len(c.outputs) == 1 && !c.dedup {
		c.single = c.outputs[0]
	}
	c.capture = lowestLevel
	caller, ok1 := o.Caller.(slog.Level)
	if stack, ok2 := o.Stack.(slog.Level); ok1 && ok2 {
		c.capture = min(caller, stack)
	}
	c.bare = make([]state, len(c.formats))
	c.setGate(o.Levels)
	var err error
	if c.sampler, err = newSampler(o.Sampling, c.clock.now); err != nil {
		return nil, err
	}
	c.redact, err = newRedactor(o.Redact)
	c.extras = c.redact != nil || c.custom || c.trace != nil || len(c.extract) > 0
	return c, err
}

// addOutput adds the output that o describes, which shares its lock with one
// before it of the same writer.
func (c *core) addOutput(o Output, levels bool) error {
	out := newOutput(o, levels)
	for _, other := range c.outputs {
		if out.sameWriter(other) {
			out.lock = other.lock
			out.shares, other.shares = true, true
			out.again = true
			other.closes = other.closes || out.closes
			break
		}
	}
	c.outputs = append(c.outputs, out)
	f, err := c.formatFor(o)
	if err != nil {
		return err
	}
	out.format = f
	if slot, ok := o.Writer.(*Slot); ok {
		slot.writesIn(f)
	}
	if out.buffer != nil {
		f.buffers = append(f.buffers, out)
	} else {
		f.direct = append(f.direct, out)
	}
	return nil
}

// formatFor returns the format that o wants, which it may share with others.
func (c *core) formatFor(o Output) (*format, error) {
	enc := o.Encoder
	if enc == nil {
		enc = JSON{}
	}
	s, err := enc.settings(o.Writer)
	if err != nil {
		return nil, err
	}
	for i := range c.formats {
		if c.formats[i].equal(s) {
			return c.formats[i], nil
		}
	}
	fields, err := parseLayout(s.layout)
	f := &format{formatSettings: s, fields: fields, slots: slotsOf(fields), keepRaw: c.dedup || s.kind == kindCustom, maxLine: c.maxLine}
	c.formats = append(c.formats, f)
	c.custom = c.custom || s.kind == kindCustom
	return f, err
}

// setGate finds the level below which no output takes anything, as a variable
// that the log methods can read inline. Where all outputs share one LevelVar it
// is that one. Where levels can change otherwise, the gate is open and
// core.admits decides; with Levels each name has a gate of its own.
func (c *core) setGate(levels *Levels) {
	lowest := LevelOff
	var shared *slog.LevelVar
	fixed := true
	for i, o := range c.outputs {
		lv, isVar := o.level.(*slog.LevelVar)
		if i == 0 && isVar {
			shared = lv
		} else if lv != shared {
			shared = nil
		}
		fixed = fixed && o.fixed
		c.dynamic = c.dynamic || o.filter != nil
		lowest = min(lowest, o.min)
	}
	c.levels = levels
	if shared != nil && levels == nil {
		c.gate = shared
		return
	}
	if !fixed {
		c.dynamic = true
		lowest = lowestLevel
	}
	c.floor = lowest
	c.gate = new(slog.LevelVar)
	c.gate.Set(lowest)
}

// gateOf returns the gate for Loggers of that name.
func (c *core) gateOf(name string) *slog.LevelVar {
	if c.levels == nil {
		return c.gate
	}
	return c.levels.gate(name, c.floor)
}

// admits reports whether any output takes records of level l.
func (c *core) admits(l slog.Level) bool {
	for _, o := range c.outputs {
		if o.admits(l) {
			return true
		}
	}
	return false
}

// tell hands an error to OnError, or else to stderr as a line, unless that is
// the output which failed.
func (c *core) tell(err error, failed io.Writer) {
	defer func() { _ = recover() }() // a panic there must not reach the caller of a log method
	if c.onError != nil {
		c.onError(err)
		return
	}
	if failed == io.Writer(os.Stderr) {
		return
	}
	now := c.clock.now()
	b := append(make([]byte, 0, 256), `{"time":"`...)
	b = jsonline.AppendUnix(b, now/1e9, int(now%1e9))
	b = append(b, `","level":"ERROR","msg":`...)
	b = jsonline.AppendString(b, err.Error())
	_, _ = os.Stderr.Write(append(b, "}\n"...)) // there is nobody left to tell
}
