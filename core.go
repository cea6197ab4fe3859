package rollway

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rollway/rollway/internal/encode"
)

// core is shared by all Loggers derived from one New.
type core struct {
	formats []*format
	single  *output   // the only output; nil if there are several
	outputs []*output // in the order of Options.Outputs
	clock   *clock

	gate    *slog.LevelVar // of Loggers without Levels
	levels  *Levels        // nil: one gate for all
	floor   slog.Level     // no output takes a level below it
	dynamic bool           // the gate alone does not tell what the outputs take
	picky   bool           // a record that passes the gate may still be left out: dynamic, or sampled
	caller  threshold
	stack   threshold
	capture slog.Level     // below it neither caller nor stack is captured
	bare    []encode.Scope // of a Logger without attributes, one for each format
	sampler *sampler
	replace encode.Replacer                                 // nil: nothing is replaced
	redact  *encode.Redactor                                // nil: nothing is redacted
	custom  bool                                            // a Custom format needs the context
	trace   func(context.Context) ([16]byte, [8]byte, bool) // nil: none
	extract []func(context.Context, []slog.Attr) []slog.Attr
	extras  bool // replace, redact, custom, trace or extract is set

	maxLine      int
	maxWait      time.Duration
	closeTimeout time.Duration
	exit         func(int)
	teller       teller

	leftOut  atomic.Uint64 // records that sampling left out and reported
	closed   atomic.Bool
	shutdown struct {
		done chan struct{}
		err  error // read-only after done is closed
	}
}

// threshold is the lowest level at which something is done.
type threshold struct {
	slog.Leveler
	min slog.Level // the level, or the lowest one if it may change
}

func thresholdOf(l slog.Leveler) threshold {
	if fixed, ok := l.(slog.Level); ok {
		return threshold{nil, fixed}
	}
	return threshold{l, lowestLevel}
}

// admits reports whether l is at the threshold or above.
func (t *threshold) admits(l slog.Level) bool {
	return l >= t.min && (t.Leveler == nil || l >= t.Level())
}

// format is one way of encoding and the outputs that use it.
type format struct {
	encode.Format
	index   int       // in core.formats
	buffers []*output // have WriteLevel: decide themselves how long to wait
	direct  []*output // may block in Write
}

func newCore(o Options) (*core, error) {
	c := &core{
		clock:        newClock(),
		caller:       thresholdOf(o.Caller),
		stack:        thresholdOf(o.Stack),
		trace:        o.Trace,
		replace:      o.ReplaceAttr,
		extract:      o.Extract,
		maxLine:      o.MaxLine,
		maxWait:      o.MaxWait,
		closeTimeout: o.CloseTimeout,
		exit:         o.Exit,
	}
	c.shutdown.done = make(chan struct{})
	for i, opt := range o.Outputs {
		if err := c.addOutput(opt, o.Levels != nil); err != nil {
			return nil, fmt.Errorf("rollway.New: Options.Outputs[%d].Encoder: %w", i, err)
		}
	}
	for _, o := range c.outputs {
		o.counts = o.buffer != nil || o.shares
		if o.name == "" {
			o.name = c.nameOf(o.w)
		}
	}
	c.teller.onError, c.teller.outputs = o.OnError, c.outputs
	if len(c.outputs) == 1 {
		c.single = c.outputs[0]
	}
	c.capture = min(c.caller.min, c.stack.min)
	c.bare = make([]encode.Scope, len(c.formats))
	c.setGate(o.Levels)
	var err error
	if c.sampler, err = newSampler(o.Sampling, c.clock.now); err != nil {
		return nil, err
	}
	c.picky = c.dynamic || c.sampler != nil
	if r := o.Redact; r != nil {
		if c.redact, err = encode.NewRedactor(r.Keys, r.Patterns, r.Replacement); err != nil {
			return nil, fmt.Errorf("rollway.New: Options.Redact.%w", err)
		}
	}
	if c.sampler != nil {
		c.sampler.redact = c.redact
	}
	c.extras = c.replace != nil || c.redact != nil || c.custom || c.trace != nil || len(c.extract) > 0
	return c, nil
}

// addOutput adds the output that o describes. It shares the lock of an earlier output
// with the same writer.
func (c *core) addOutput(o Output, levels bool) error {
	out := newOutput(o, levels)
	for _, other := range c.outputs {
		if out.sameWriter(other) {
			out.lock = other.lock
			out.shares, other.shares = true, true
			out.again = true
			other.closes = other.closes && out.closes
			other.users = append(other.users, out)
			break
		}
	}
	c.outputs = append(c.outputs, out)
	f, err := c.formatFor(o)
	if err != nil {
		return err
	}
	out.format = f
	if out.buffer != nil {
		f.buffers = append(f.buffers, out)
	} else {
		f.direct = append(f.direct, out)
	}
	return nil
}

// formatFor returns the format for o, perhaps one that other outputs use.
func (c *core) formatFor(o Output) (*format, error) {
	enc := o.Encoder
	if enc == nil {
		enc = JSON{}
	}
	settings, err := enc.options(o.Writer)
	if err != nil {
		return nil, err
	}
	settings.MaxLine, settings.Replaces = c.maxLine, c.replace != nil
	encoder, err := encode.New(settings)
	if err != nil {
		return nil, err
	}
	for _, f := range c.formats {
		if sameFormat(f.Options, encoder.Options) {
			return f, nil
		}
	}
	f := &format{Format: *encoder, index: len(c.formats)}
	c.formats = append(c.formats, f)
	c.custom = c.custom || f.Kind == encode.Custom
	return f, nil
}

// setGate finds the level below which no output takes anything, as a variable that
// log methods read inline. If all outputs share one LevelVar, it is that one. If
// levels can change in another way, the gate is open and core.admits decides. With
// Levels each name has its own gate.
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
	return c.levels.gate(gateKey{name, c.floor, false})
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

// accepts reports whether a record that passed the gate is to be written. It counts
// one that comes after Shutdown.
func (l *Logger) accepts(ctx context.Context, level slog.Level, msg string, attrs []slog.Attr) bool {
	c := l.core
	if c.closed.Load() {
		c.reject(level)
		return false
	}
	return (!c.dynamic || c.admits(level)) && (c.sampler == nil || c.sample(ctx, level, msg, l.groups, attrs))
}

// reject counts a record that came after Shutdown.
func (c *core) reject(l slog.Level) {
	for _, o := range c.outputs {
		if o.admits(l) {
			o.rejected.Add(1)
		}
	}
}

// nameOf returns the default name of an output: that of its file or its type, with a
// number if another output has it.
func (c *core) nameOf(w io.Writer) string {
	name := fmt.Sprintf("%T", w)
	if f, ok := w.(interface{ Name() string }); ok {
		name = f.Name()
	}
	taken := func(name string) bool {
		return slices.ContainsFunc(c.outputs, func(o *output) bool { return o.name == name })
	}
	unique := name
	for n := 2; taken(unique); n++ {
		unique = fmt.Sprintf("%s #%d", name, n)
	}
	return unique
}
