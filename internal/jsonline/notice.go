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
	return append(dst, "}}\n"...)
}
