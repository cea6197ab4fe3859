package jsonline

import (
	"strconv"
	"time"
)

// AppendLossNotice appends the canonical line that announces a gap in a
// stream: count lines were dropped for reason.
//
//	{"time":"…","level":"WARN","msg":"rollway: 812 lines dropped","attrs":{"reason":"buffer full","dropped":812}}
func AppendLossNotice(dst []byte, t time.Time, count uint64, reason string) []byte {
	return AppendLevelNotice(dst, t, count, reason, LevelCounts{})
}

// LevelCounts says of lines what their levels were, as far as that is known:
// below INFO, from there to below WARN, from there to below ERROR, and the rest.
type LevelCounts struct{ Debug, Info, Warn, Error uint64 }

// AppendLevelNotice is AppendLossNotice with the levels of the lines, of which
// those with none are left out:
//
//	…"attrs":{"reason":"buffer full","dropped":812,"levels":{"DEBUG":800,"INFO":10}}}
func AppendLevelNotice(dst []byte, t time.Time, count uint64, reason string, levels LevelCounts) []byte {
	noun := " lines dropped"
	if count == 1 {
		noun = " line dropped"
	}
	dst = append(dst, `{"time":"`...)
	dst = AppendTime(dst, t)
	dst = append(dst, `","level":"WARN","msg":"rollway: `...)
	dst = strconv.AppendUint(dst, count, 10)
	dst = append(dst, noun...)
	dst = append(dst, `","attrs":{"reason":`...)
	dst = AppendString(dst, reason)
	dst = append(dst, `,"dropped":`...)
	dst = strconv.AppendUint(dst, count, 10)
	dst = levels.append(dst)
	return append(dst, "}}\n"...)
}

func (c LevelCounts) append(dst []byte) []byte {
	between := `,"levels":{`
	for _, l := range [...]struct {
		name string
		n    uint64
	}{{`"DEBUG":`, c.Debug}, {`"INFO":`, c.Info}, {`"WARN":`, c.Warn}, {`"ERROR":`, c.Error}} {
		if l.n > 0 {
			dst = append(append(dst, between...), l.name...)
			dst = strconv.AppendUint(dst, l.n, 10)
			between = ","
		}
	}
	if c != (LevelCounts{}) {
		dst = append(dst, '}')
	}
	return dst
}
